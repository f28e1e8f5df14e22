// SPDX-License-Identifier: Apache-2.0

package sim

const (
	executorMessages = "internal/executor/messages.go"
	engineMessage    = "internal/engine/message.go"
	matchingInflow   = "internal/matching/inflow.go"
	matchingMatch    = "internal/matching/match.go"
	matchingMessage  = "internal/matching/message.go"
	matchingReceive  = "internal/matching/receive.go"
	matchingAtomic   = "internal/matching/tagged_atomic.go"
	executorAtomic   = "internal/executor/tagged_atomic.go"
	wireAtomic       = "internal/wire/tagged_atomic.go"
	sessionRider     = "internal/session/rider.go"
	wireHeader       = "internal/wire/header.go"
	sessionWait      = "internal/session/target_wait.go"
)

// Bugs of messages and receives.
var bugsOfMessages = []bug{
	{"a frame of messages that was kept runs from its first record again", "", []edit{
		{executorMessages, "\tr.Skip(s.partial.ran)\n\tin, m := s.inflow, &s.message\n", "\tin, m := s.inflow, &s.message\n"}}},
	{"a frame that ends partly run is answered as not run", "", []edit{
		{executorMessages, "for i := p.ran; i < int(p.ops); i++ {", "for i := 0; i < int(p.ops); i++ {"}}},
	{"a frame that ends partly run is answered as if it had run", "", []edit{
		{executorMessages, "\t\tw.AppendStatus(i, wire.StatusNotExecuted)\n", ""}}},
	{"the inflow of a session that has ended stays", "", []edit{
		{executorMessages, "\ts.inflow.Close()\n\tp := &s.partial\n", "\tp := &s.partial\n"}}},
	{"a message goes on in the next session", "", []edit{
		{engineMessage, "\tif f := c.message; f != nil {\n", "\tif f := c.message; f != nil && false {\n"}}},
	{"a sender that dies in the middle of a message holds its receive", "", []edit{
		{engineTarget, "\tif t.midway {\n", "\tif false {\n"}}},
	{"a message whose rest has to come again holds its receive when its sender dies", "TestStalls", []edit{
		{executorMessages, "\ts.executeHeld(&o)\n\to.Due, o.Waits, o.Midway, o.Notices = s.Due(), s.Kept(),", "\ts.executeHeld(&o)\n\to.Due, o.Waits, o.Midway, o.Notices = s.Due(), s.Waits(),"},
		{executorSession, "\to.Due, o.Waits, o.Midway, o.Notices = s.Due(), s.Kept(),", "\to.Due, o.Waits, o.Midway, o.Notices = s.Due(), s.Waits(),"},
		{sessionWait, "// Kept reports", "// Waits reports whether the next frame waits, kept or not.\nfunc (t *Target) Waits() bool { return t.waits }\n\n// Kept reports"}}},
	{"the rest of a cancelled message is never dropped", "", []edit{
		{engineMessage, "c.message, c.severed = nil, f.sent", "c.message = nil"}}},
	{"a message counts twice that completed while the next one waited", "", []edit{
		{engineComplete, "n := max(records-g.told, 0)", "n := min(records, len(g.frags))"}}},
	{"messages that wait when the target restarts reach its new life", "", []edit{
		{engineMeet, "(f.Verb.Array() || f.message() ||", "(f.Verb.Array() ||"}}},
	{"a session without order runs frames of messages ahead", "", []edit{
		{sessionTarget, "t.anyOrder && h.Flags&wire.FlagMessages == 0", "t.anyOrder"}}},
	{"a session that has ended says that a message waits", "", []edit{
		{sessionEnd, "\tt.free(ack)\n\tt.waits = false\n", "\tt.free(ack)\n"}}},
	{"the frame of a message that waits is not kept", "", []edit{
		{sessionWait, "t.heldMask&(1<<(t.turn&slotMask)) == 0", "false"}}},
	{"a message that waits is given up after a while", "", []edit{
		{sessionReceive, "\tif lives {\n", "\tif lives && !busy {\n"}}},
	{"no probe keeps the session in which a message waits", "", []edit{
		{sessionSend, "s.state == Open && s.busy && now >= s.probeAt", "false"}}},
	{"messages are granted for an endpoint that receives none", "", []edit{
		{engineHello, "f &^= wire.FeatureMessages", "f &^= 0"}}},
	{"a message goes into the newest receive", "", []edit{
		{matchingMatch, "\tfor e := q.posted[index(m.tagged)].first; e != nil; e = e.next {\n", "\tfor e := q.posted[index(m.tagged)].last; e != nil; e = e.prev {\n"}}},
	{"a receive takes the newest message that is held", "", []edit{
		{matchingMatch, "\tfor e := q.held[index(n.Tagged)].first; e != nil && q.waits(n); {\n\t\tm := e.of\n\t\te = e.next\n", "\tfor e := q.held[index(n.Tagged)].last; e != nil && q.waits(n); {\n\t\tm := e.of\n\t\te = e.prev\n"}}},
	{"the receive of a message that breaks off is lost", "", []edit{
		{matchingMatch, "\tcase !n.multi:\n\t\tq.list(n)\n", "\tcase !n.multi:\n\t\tq.freeReceive(n)\n"}}},
	{"a message is written behind the end of its buffer", "", []edit{
		{matchingMessage, "case at < m.size:", "case at < m.length:"},
		{matchingMessage, "data[:min(uint64(len(data)), m.size-at)]", "data"},
		{matchingReceive, "\t\tif size := uint64(len(b)); offset >= size {\n", "\t\tif size := uint64(cap(b)); offset >= size {\n"},
		{matchingReceive, "copy(b[offset:], data)", "copy(b[offset:cap(b)], data)"}}},
	{"a message for a posted receive is held for a later one", "", []edit{
		{matchingInflow, "return !mustMatch && q.hold(m)", "return q.hold(m)"}}},
	{"no message tries again when a receive is posted", "", []edit{
		{matchingReceive, "\t\tq.offer(n)\n\t}\n\tq.makeRoom()\n", "\t\tq.offer(n)\n\t}\n"}}},
	{"a tagged atomic that does not fit its receive changes it in part", "", []edit{
		{matchingAtomic, "\tcase m.size < m.needs():\n\t\to.misfit = Truncated\n", "\tcase m.size <= o.offset:\n\t\to.misfit = Truncated\n"},
		{matchingAtomic, "m.into.within(m.offset+o.offset, m.length)", "m.into.within(m.offset+o.offset, m.size-o.offset)"},
		{matchingAtomic, "m.op.kernel(m.op.target, w.Part, w.Atomic.Compare, result)", "m.op.kernel(m.op.target, w.Part[:len(m.op.target)], nil, nil)"}}},
	{"a tagged atomic begins where its receive does", "", []edit{
		{matchingAtomic, "m.into.within(m.offset+o.offset, m.length)", "m.into.within(m.offset, m.length)"}}},
	{"a tagged atomic that was held is combined twice", "", []edit{
		{matchingMessage, "m.op.kernel(m.op.target[at:at+uint64(len(data))], data, nil, nil)", "for range 2 {\n\t\t\tm.op.kernel(m.op.target[at:at+uint64(len(data))], data, nil, nil)\n\t\t}"}}},
	{"a tagged atomic that does not fit is answered as if it did", "", []edit{
		{executorAtomic, "m.Tells() && status != wire.StatusOK", "false"}}},
	{"a result waits for a message behind it", "", []edit{
		{wireAtomic, "\tif m.Tells() {\n\t\tw.room = 0 // nothing follows\n\t}\n", ""}}},
	{"tagged atomics are sent to targets that do not know them", "", []edit{
		{engineMessage, "case !features.Allow(f.Verb):", "case false:"}}},
	{"a rider acknowledges answers with results", "", []edit{
		{sessionRider, "t.cache[psn&slotMask].buf != nil", "false"}}},
	{"a padded request ends where its packet does", "", []edit{
		{wireHeader, "return unpad(payload)", "return payload, ReasonOK"}}},
}
