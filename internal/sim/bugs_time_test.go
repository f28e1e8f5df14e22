// SPDX-License-Identifier: Apache-2.0

package sim

const (
	engineConn    = "internal/engine/conn.go"
	memoryExecute = "internal/memory/memory.go"
	engineReceive = "internal/engine/receive.go"
	engineHello   = "internal/engine/hello.go"
	enginePairs   = "internal/engine/pairs.go"
	engineMeet    = "internal/engine/meet.go"
	engineMoved   = "internal/engine/moved.go"
	engineGroup   = "internal/engine/group.go"
	engineCancel  = "internal/engine/cancel.go"
	wireRun       = "internal/wire/run_write.go"
	sessionConfig = "internal/session/session.go"
)

// Bugs that take time, or more than one path, name or datatype, to show.
var bugsOfTime = []bug{
	{"idle sessions are not closed, so that targets forget them first", "", []edit{
		{sessionInitiator, "!s.watched && now-s.workedAt >= int64(IdleClose)\n", "!s.watched && now-s.workedAt >= 1e6*int64(IdleClose)\n"}}},
	{"what joins a session that asks for outcomes shares its give-up time", "TestJoiningAskerHasOwnTime", []edit{
		{sessionSend, "\ts.heardAt = now\n\tif s.rtt.backoff > 0 {", "\tif s.rtt.backoff > 0 {"}}},
	{"what joins a session that asks for outcomes waits for the next hello", "TestJoiningAskerHasOwnTime", []edit{
		{sessionSend, "s.rtt.backoff, s.timer = 0, now\n", "s.rtt.backoff = 0\n"}}},
	{"outcomes are asked for no longer than a silent target has, though it answers hellos", "", []edit{
		{sessionSend, "now >= s.settleBy", "true"}}},
	{"targets forget sessions before their initiators close them", "", []edit{
		{engineHello, "max(int64(e.cfg.Session.IdleRetire), int64(m.Keep)*int64(time.Second))", "int64(20*time.Second)"}}},
	{"nothing is ever given up", "", []edit{
		{sessionSend, "\t\tif now-s.heardAt >= int64(s.cfg.GiveUp) {\n\t\t\treturn s.giveUp()", "\t\tif s.state == Connecting && now-s.heardAt >= int64(s.cfg.GiveUp) {\n\t\t\treturn s.giveUp()"}}},
	{"the hello after giving up does not name the former session", "", []edit{
		{engineRemote, "params.Resume = r.suspended.ini.Identity()", "_ = r.suspended.ini.Identity()"}}},
	{"what was given up is forgotten after a second", "", []edit{
		{engineSuspended, "c.enter(c.r.e.now + int64(session.SuspendedFor))", "c.enter(c.r.e.now + int64(session.SuspendedFor)/60)"}}},
	{"a frame too many is taken for run when a session is settled", "", []edit{
		{sessionRan, "d <= 0 ||", "d <= 1 ||"}}},
	{"a frame too few is taken for run when a session is settled", "", []edit{
		{sessionRan, "d <= 0 ||", "d < 0 ||"}}},
	{"late results are written where the caller wanted the first ones", "", []edit{
		{engineLater, "f.whatCame()", "f.result()"}}},
	{"any frame shows that the target lives", "TestReplayKeepsNoWatch", []edit{
		{sessionReceive, "\tif s.shared&wire.FeatureEchoes == 0 {\n", "\tif true {\n\t\treturn true\n\t}\n\tif s.shared&wire.FeatureEchoes == 0 {\n"}}},
	{"the number of a probe that was answered is taken again", "TestReplayKeepsNoWatch", []edit{
		{sessionReceive, "wire.Diff(h.PSN, s.echoed) <= 0", "false"}}},
	{"hellos are repeated without a pause", "", []edit{
		{sessionSend, "\t\ts.helloDue, s.helloAgain = true, true\n", "\t\ts.helloDue, s.helloAgain, s.timer = true, true, now+1\n"}}},
	{"a region that was taken away is still found", "", []edit{
		{memoryExecute, "\tm.last, m.reads, m.writes, m.bytesRead, m.bytesWritten = nil, 0, 0, 0, 0\n", "\tm.reads, m.writes, m.bytesRead, m.bytesWritten = 0, 0, 0, 0\n"},
		{memoryExecute, "\t\tm.inside, m.last = true, nil\n", "\t\tm.inside = true\n"}}},
	{"operations of different datatypes in one run", "", []edit{
		{wireRun, "return headOf(rec) == r.head }",
			"return headOf(rec)&0xffff == r.head&0xffff && elemSize[rec.Datatype] == elemSize[uint8(r.head>>16)] }"}}},
}

// Bugs of the mechanisms that make a session the only one of its pair, and that find
// out what became of its operations.
var bugsOfPairs = []bug{
	{"a former session that the hello does not name runs on, and late frames in it", "", []edit{
		{engineHello, "\tif !t.named(r) {\n\t\tt.remove(endedReplaced)\n\t\treturn\n\t}\n", "\tif !t.named(r) {\n\t\tp.current = nil\n\t\treturn\n\t}\n"}}},
	{"a former session on another queue is not found", "", []edit{
		{engineGroup, "e.pairs, e.cfg.Life = engines[0].pairs, engines[0].cfg.Life", "e.cfg.Life = engines[0].cfg.Life"}}},
	{"an old hello begins a session", "", []edit{
		{enginePairs, "int32(a-b) > 0", "a != b"}}},
	{"a target answers to where its session began, for ever", "", []edit{
		{engineTarget, "if !known && fresh(o.Verdict, h) {", "if false {"}}},
	{"targets are not asked to keep sessions for longer than usual", "", []edit{
		{sessionConfig, "IdleClose+SuspendedFor+keptGiveUps*c.GiveUp", "IdleClose+SuspendedFor"}}},
	{"a refused hello is repeated at every tick", "", []edit{
		{engineRemote, "if r.e.now < r.retryAt {", "if false {"}}},
	{"a request to what is an initiator's session here now is not answered", "", []edit{
		{engineConn, "if h.Type == wire.Request || h.Type == wire.Probe {", "if false {"}}},
	{"each name of a pair has a session of its own", "", []edit{
		{engineMeet, "other != nil && other != r {", "other != nil && other != r && false {"}}},
	{"a reset is taken for the proof of a restart", "", []edit{
		{sessionReceive, "return s.suspend(Forgotten)", "return s.end(PeerRestarted)"}}},
	{"what was let go after it had left is said never to have run", "", []edit{
		{engineCancel, "Result{Outcome: Unknown, Reason: session.Cancelled,", "Result{Outcome: NotExecuted, Reason: session.Cancelled,"}}},
	{"what waits when a target restarts meets the new life", "", []edit{
		{engineMeet, "f.Peer == c.by.id && (f.Verb.Array() || f.message() || f.Verb == VerbWatch)", "f.Peer == c.by.id && !f.Verb.Array()"}}},
	{"a name whose new path leads to another life stands for it at once", "", []edit{
		{engineMoved, "\tq.id, q.process, p.r = r.id, r.process, q\n\tofPeer := func(f *flight) bool { return f.Peer == p.id }\n\tr.hand(q, ofPeer)\n",
			"\tp.r = q\n\tofPeer := func(f *flight) bool { return f.Peer == p.id }\n\tr.failWhere(Result{Outcome: NotExecuted, Reason: session.PeerRestarted}, ofPeer)\n"}}},
	{"what waits for a name whose new path leads to another life meets that", "", []edit{
		{engineMoved, "\tq.id, q.process, p.r = r.id, r.process, q\n", "\tp.r = q\n"}}},
	{"frames that come on another queue than their session's are dropped", "", []edit{
		{engineReceive, "|| !e.group.pass(e, e.at.packet, queue) {", "|| e.group == nil {"}}},
}
