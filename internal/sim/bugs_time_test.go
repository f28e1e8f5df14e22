// SPDX-License-Identifier: Apache-2.0

//go:build simbugs

package sim

const (
	engineConn    = "internal/engine/conn.go"
	engineMemory  = "internal/engine/memory.go"
	engineReceive = "internal/engine/receive.go"
	wireRun       = "internal/wire/run_write.go"
	sessionConfig = "internal/session/session.go"
)

// Bugs that take time, or more than one path, name or datatype, to show.
var bugsOfTime = []bug{
	{"idle sessions are not closed, so that targets forget them first", "", []edit{
		{sessionSend, "now-s.workedAt >= int64(IdleClose):", "now-s.workedAt >= 1e6*int64(IdleClose):"}}},
	{"targets forget sessions before their initiators close them", "", []edit{
		{sessionConfig, "def(&c.IdleRetire, 90*time.Second)", "def(&c.IdleRetire, 20*time.Second)"}}},
	{"nothing is ever given up", "", []edit{
		{sessionSend, "if now-s.heardAt >= int64(s.cfg.GiveUp) || ", "if s.state == Connecting && now-s.heardAt >= int64(s.cfg.GiveUp) || s.state == Settling && "}}},
	{"the hello after giving up does not name the former session", "", []edit{
		{enginePeer, "params.Resume = p.limbo.ini.Identity()", "_ = p.limbo.ini.Identity()"}}},
	{"what was given up is forgotten after a second", "", []edit{
		{engineLimbo, "c.until = p.e.now + resumeFor", "c.until = p.e.now + resumeFor/60"}}},
	{"a frame too many is taken for run when a session is settled", "", []edit{
		{sessionInitiator, "wire.Diff(psn-1, executed) > 0", "wire.Diff(psn-1, executed) > 1"}}},
	{"a frame too few is taken for run when a session is settled", "", []edit{
		{sessionInitiator, "wire.Diff(psn-1, executed) > 0", "wire.Diff(psn-1, executed) >= 0"}}},
	{"late results are written where the caller wanted the first ones", "", []edit{
		{engineLimbo, "Result: bytes.Clone(op.Result),", "Result: op.Result,"},
		{engineLimbo, "\t\"bytes\"\n", ""}}},
	{"hellos are repeated without a pause", "", []edit{
		{sessionSend, "\tif s.state == Connecting {\n\t\ts.helloDue = true\n", "\tif s.state == Connecting {\n\t\ts.helloDue, s.timer = true, now+1\n"}}},
	{"a region that was taken away is still found", "", []edit{
		{engineMemory, "\tm.last = nil\n", ""}}},
	{"operations of different datatypes in one run", "", []edit{
		{wireRun, "return headOf(rec) == r.head }",
			"return headOf(rec)&0xffff == r.head&0xffff && elemSize[rec.Datatype] == elemSize[uint8(r.head>>16)] }"}}},
}

// finding is a bug that takes dimensions to find which are not in every run. One
// without edits stands in the sources as they are. Once they are mended, and the
// dimensions in Mended, each is sown by edits that take its mending back; the comments
// say where.
type finding struct {
	bug
	with string
}

var findings = []finding{
	// The time or the table by which a target finds the former session of a pair: forgotten after a minute.
	{bug{"a former session whose initiator has forgotten it runs on, and late frames in it", "", nil}, "mended,outage"},
	// The comparison of a hello's source with the former session's: with the MAC address.
	{bug{"the former session of a peer is not found when its gateway has another address", "", nil}, "mended,moves,outage"},
	// The search for the former session: in the table of the hello's own queue only.
	{bug{"the former session of a peer is not found when its hello comes to another queue", "", nil}, "mended,queues"},
	// What is kept of a session that is sacrificed: nothing that its successor's hello could name.
	{bug{"a session sacrificed for others runs on, and late frames in it", "", nil}, "mended,tight,outage"},
	// The refusal to stage a frame in a session that has been silent for IdleClose: never, or
	// judged by the answers that a node finds when it wakes up, instead of by what it sent.
	{bug{"a request is put into a session that was idle for too long while its node slept", "", nil}, "mended,freeze"},
	// The bound of GiveUp by IdleClose: none.
	{bug{"give-up times longer than targets keep sessions", "", nil}, "mended,patient"},
	// The pause before a suspended session's next hello: none.
	{bug{"a refused hello is repeated at every tick", "", nil}, "mended,shut"},
	// What a target remembers of a session that it ended in order: nothing.
	{bug{"a session that its target ended is taken for one lost by a restart, when the reset gets lost", "", nil}, "mended,ends"},
	// The answer to a request whose id is now an initiator's: none.
	{bug{"a request to what is an initiator's session here now is not answered", "", nil}, "mended,prompt"},
	// The search for the session that a pair has: by peer, not by pair of endpoints.
	{bug{"each name of a pair has a session of its own", "", nil}, "mended,aliases"},
	{bug{"frames that come on another queue than their session's are dropped", "", []edit{
		{engineReceive, "&& e.group.pass(packet, q) {", "&& e.group != nil {"}}}, "mended,queues"},
}
