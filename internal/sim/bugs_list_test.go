// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// edit replaces a piece of source that occurs exactly once in a file. The file's path
// begins at the root of the repository.
type edit struct{ file, old, new string }

// bug is a plausible mistake, as edits of the sources.
type bug struct {
	name  string
	tests string // the tests that find it; empty for TestSim
	edits []edit
}

// rare are the dimensions of the runs that look for a bug which runs of all dimensions
// find too seldom, by its name.
var rare = map[string]string{
	"a request to what is an initiator's session here now is not answered": "hours,prompt",
	"an answer that lay in the ring during a stop counts as work":          "hours,freeze",
	"a follower's flight has the leader's place":                           "hours,freeze",
}

const (
	sessionTarget    = "internal/session/target.go"
	sessionEnd       = "internal/session/target_end.go"
	sessionInitiator = "internal/session/initiator.go"
	sessionRan       = "internal/session/ran.go"
	sessionReceive   = "internal/session/initiator_receive.go"
	sessionSend      = "internal/session/initiator_send.go"
	engineTarget     = "internal/engine/target.go"
	sessionAnswer    = "internal/session/target_send.go"
	executorSession  = "internal/executor/session.go"
	engineParty      = "internal/engine/party.go"
	engineRemote     = "internal/engine/remote.go"
	engineLater      = "internal/engine/later.go"
	enginePack       = "internal/engine/pack.go"
	engineComplete   = "internal/engine/complete.go"
	engineSuspended  = "internal/engine/suspended.go"
	engineFlight     = "internal/engine/flight.go"
)

var bugs = []bug{
	{"dedupe off by one: the last frame runs again", "", []edit{
		{sessionTarget, "case d == 0:\n", "case d == 0, d == -1:\n"}}},
	{"a sum with a bound forgets the bound", "", []edit{
		{"atomic/bounded.go", "return s, exact && !a.less(c, s)", "return s, exact"}}},
	{"a difference with a bound wraps around", "", []edit{
		{"atomic/bounded.go", "d, exact := a.difference(t, b)\n\t\treturn d, exact && !a.less(d, c)", "d, _ := a.difference(t, b)\n\t\treturn d, !a.less(d, c)"}}},
	{"acknowledged without having run, for want of a buffer", "", []edit{
		{executorSession, "return session.NoBuffer, wire.ReasonOK", "s.Executed(nil, 0, ops, 0)\n\t\treturn session.Execute, wire.ReasonOK"}}},
	{"a refusal by the same process ends a suspended session", "", []edit{
		{engineSuspended, "return c.ini.Life() != 0 && r.conn.ini.Life() != c.ini.Life()", "return true"}}},
	{"ack covers frames that are only held", "", []edit{
		{sessionAnswer, "Ack: t.expected - 1,", "Ack: t.expected - 1 + uint32(bits.OnesCount64(t.heldMask)),"}}},
	{"epoch of requests ignored", "", []edit{
		{engineTarget, "if h.Epoch != t.epoch {", "if false {"}}},
	{"answers freed one too early", "", []edit{
		{sessionTarget, "for wire.Diff(ack, t.freed) > 0 {", "for wire.Diff(ack, t.freed) > -1 && t.freed+1 != t.expected {"}}},
	{"psn compared without wrap", "", []edit{
		{sessionTarget, "switch d := wire.Diff(h.PSN, t.expected); {", "switch d := int64(h.PSN) - int64(t.expected); {"}}},
	{"a frame that is one early runs out of turn", "", []edit{
		{sessionTarget, "case d == 0:\n", "case d == 0, d == 1 && t.heldMask == 0:\n"}}},
	{"sack map shifted by one", "Test(OneLoss|Resends)", []edit{
		{sessionEnd, "rotated(early, t.expected+1)", "rotated(early, t.expected+2)"}}},
	{"fence ignored", "", []edit{
		{enginePack, "if f.Flags&FlagFence != 0 && f.sent == 0", "if f.Flags&FlagFence > FlagFence && f.sent == 0"}}},
	{"fence waits for the frame at hand only", "", []edit{
		{enginePack, "(s.w.Ops() > 0 || r.owes())", "s.w.Ops() > 0"}}},
	{"result copied after completion", "", []edit{
		{engineComplete, "s.results(&r)\n\t\t\ts.settle()", "s.settle()\n\t\t\ts.results(&r)"}}},
	{"reset of another session believed", "", []edit{
		{engineReceive, "e.begun[atTarget{m.Session, h.Epoch}]", "e.begun[atTarget{m.Session, 0}]"},
		{engineConn, "atTarget{known.Session, known.Epoch}", "atTarget{known.Session, 0}"},
		{sessionInitiator, "s.remote == id && s.epoch == epoch", "s.remote == id"},
		{sessionReceive, "wire.ReasonOK || r.Session != s.remote {", "wire.ReasonOK {"},
		{sessionReceive, "if h.Epoch != s.epoch {", "if h.Epoch != s.epoch && h.Type != wire.Reset {"}}},
	{"retransmission changes the payload", "", []edit{
		{sessionSend, "s.Resent++\n", "s.Resent++\n\t\tr.buf[r.n-1] ^= 1\n"}}},
	{"sent once is taken for never sent", "", []edit{
		{sessionInitiator, "s.reqs[(s.next-1)&slotMask].sends == 0", "s.reqs[(s.next-1)&slotMask].sends <= 1"}}},
	{"answer taken from another psn's place in the cache", "", []edit{
		{sessionAnswer, "a := &t.cache[psn&slotMask]\n", "a := &t.cache[psn&(slotMask>>1)]\n"}}},
	{"a clean run reaches over an answer with results", "", []edit{
		{sessionAnswer, "wire.Diff(first-1, t.freed) > 0 && t.cache[(first-1)&slotMask].buf == nil",
			"wire.Diff(first-1, t.freed) > 0"}}},
	{"a frozen session goes on", "", []edit{
		{sessionTarget, "case d >= 0 && t.frozen:", "case d > 1<<30 && t.frozen:"}}},
	{"answers of ended sessions never given back", "", []edit{
		{sessionEnd, "\t\tt.give(t.cache[i].buf)\n", ""}}},
	{"parties that have more sessions now are counted twice", "", []edit{
		{engineParty, "\tc.sizes[p.sessions]--\n", ""}}},
	{"a spare buffer is forgotten when an answer of its own comes back", "", []edit{
		{sessionTarget, "\t\tt.spare = b[:cap(b)]\n\t\treturn\n", "\t\treturn\n"}}},
	{"half an array that ran reported as not executed", "", []edit{
		{engineFlight, "r.Outcome == NotExecuted && f.ran && !f.message() {", "r.Outcome == NotExecuted && f.ran && false {"}}},
	{"timeouts never resend", "", []edit{
		{sessionSend, "s.toSend |= 1 << (s.una & slotMask)", "_ = s.una"}}},
	{"results of answered parts forgotten at the give-up", "", []edit{
		{engineLater, "f.whatCame()", "make([]byte, len(f.whatCame()))"}}},
	{"an array of which a part was never sent succeeds later", "", []edit{
		{engineLater, "if !f.packed() {", "if false {"}}},
	{"a target grants features that were not asked for", "", []edit{
		{engineHello, "m.Features & e.cfg.Session.Features", "e.cfg.Session.Features"}}},
	{"a held copy survives the frame and runs a window later", "", []edit{
		{sessionTarget, "\theldMask   uint64 // bit psn%64\n", "\theldMask   uint64\n\tfromHeld bool\n"},
		{sessionTarget, "\tbit := uint64(1) << (h.PSN & slotMask)\n", "\tbit := uint64(1) << (h.PSN & slotMask)\n\tt.fromHeld = false\n"},
		{sessionTarget, "\te := &t.held[next&slotMask]\n", "\te := &t.held[next&slotMask]\n\tt.fromHeld = true\n"},
		{sessionTarget, "\tt.unhold(t.expected)", "\tif t.fromHeld {\n\t\tt.unhold(t.expected)\n\t}\n\tt.fromHeld = false"}}},
}

// TestSownBugsQuote makes sure that the bugs can be sown, which happens seldom: every
// edit's old text stands exactly once in its file.
func TestSownBugsQuote(t *testing.T) {
	known := map[string]bool{}
	for _, b := range slices.Concat(bugs, bugsOfTime, bugsOfPairs, bugsOfStaging, bugsOfOrder, bugsOfEvents, bugsOfCopies, bugsOfMessages, bugsOfTakeover, bugsOfProcesses, bugsOfAcks, bugsOfAttending, bugsOfCalls, bugsOfWaits, bugsOfLengths) {
		known[b.name] = true
		for _, e := range b.edits {
			src, err := os.ReadFile(filepath.Join("..", "..", e.file))
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(src), e.old); n != 1 || e.new == e.old {
				t.Errorf("bug %q: %q stands %d times in %s, want once, and a change of it", b.name, e.old, n, e.file)
			}
		}
	}
	for name, with := range rare {
		if _, err := ParseDims(with); err != nil || !known[name] {
			t.Errorf("rare: no bug %q, or no dimensions %q (%v)", name, with, err)
		}
	}
	for name := range findings {
		if !known[name] {
			t.Errorf("findings: no bug %q", name)
		}
	}
}
