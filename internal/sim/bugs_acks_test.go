// SPDX-License-Identifier: Apache-2.0

package sim

const (
	sessionDelay      = "internal/session/delay.go"
	sessionCongestion = "internal/session/congestion.go"
	engineDelay       = "internal/engine/delay.go"
	sessionProof      = "internal/session/proof.go"
)

// ackTests are the tests of acks that may be delayed.
const ackTests = "Test(Stream|SmallWindow|Lone|LastOne)"

// Bugs of acks that may be delayed. An ack that comes too late or too often breaks no
// promise, so tests of time and of numbers find them.
var bugsOfAcks = []bug{
	{"the ack of any request may be delayed, for the target", ackTests, []edit{
		{sessionDelay, "h.Type == wire.Request && h.Flags&wire.FlagDelay != 0 &&", "h.Type == wire.Request &&"}}},
	{"the ack of no request may be delayed, for the target", ackTests, []edit{
		{sessionDelay, "h.Type == wire.Request && h.Flags&wire.FlagDelay != 0 &&", "h.Type == 0 &&"}}},
	{"an initiator delays the ack of the last request", ackTests, []edit{
		{sessionDelay, "s.toSend == 0 && !s.follows || ", ""}}},
	{"an initiator does not know that more follow behind its window", ackTests, []edit{
		{sessionDelay, "s.toSend == 0 && !s.follows || ", "s.toSend == 0 || "}}},
	{"requests are not counted anew behind one whose ack is due", ackTests, []edit{
		{sessionDelay, "\t\ts.delays = 0\n", ""}}},
	{"acks are for as many requests as ever, however small the window", ackTests, []edit{
		{sessionDelay, "min(mostPerAck, window/2)", "mostPerAck"}}},
	{"the flag is set in any session", ackTests, []edit{
		{sessionDelay, "if s.shared&wire.FeatureDelays == 0 {", "if s.shared&wire.FeatureDelays > 1<<30 {"}}},
	{"a delayed ack never leaves", ackTests, []edit{
		{engineTarget, "if o.Due {", "if o.Due && !o.Delays {"}}},
	{"answers that were delayed do not open the window", ackTests, []edit{
		{sessionCongestion, "c.also++", "c.also = 0"}}},
	{"a round takes the same packets again and again", ackTests, []edit{
		{engineDelay, "\t\te.port.Release()\n", ""}}},
	{"a round waits though there is something to answer", ackTests, []edit{
		{engineDelay, "e.delayed == n+more", "e.delayed > 0"}}},
}

// Bugs of the proof that long frames pass.
var bugsOfLengths = []bug{
	{"long frames are taken not to pass without an echo of a short one", "", []edit{
		{sessionProof, "\ts.waits++\n", "\tif s.waits++; s.waits == 7 {\n\t\ts.proof, s.timer = proof{}, 0\n\t\ts.payload, s.credit = s.p.Sure-wire.HeaderLen, s.window\n\t\treturn Event{Kind: Narrowed}\n\t}\n"},
		{"internal/engine/conn.go", "if c.ini.Tick(now).Kind == session.Ended {\n", "if k := c.ini.Tick(now).Kind; k == session.Narrowed {\n\t\tc.narrowed()\n\t} else if k == session.Ended {\n"}}},
	{"silence counts as long probes that were lost", "", []edit{
		{sessionProof, "\ts.waits++\n", "\ts.waits++\n\ts.misses++\n"},
		{sessionProof, "s.misses == proofMisses", "s.misses >= proofMisses"}}},
	{"the echo of a short probe makes the frames of a narrow session long", "", []edit{
		{sessionProof, "if !echo || !long {", "if !echo {"}}},
}
