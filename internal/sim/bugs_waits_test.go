// SPDX-License-Identifier: Apache-2.0

package sim

const (
	waitingQueues   = "internal/waiting/waiting.go"
	executorWaiting = "internal/executor/waiting.go"
	engineTicket    = "internal/engine/ticket.go"
	sessionTickets  = "internal/session/tickets.go"
	shareWait       = "internal/share/wait.go"
	shareHostRing   = "internal/share/host_ring.go"
)

// Bugs of operations that wait at the target.
var bugsOfWaits = []bug{
	{"a wait runs though its condition does not hold", "TestWaitsUnderFaults", []edit{
		{waitingQueues, "if !ops.Applied(n.Op, n.Datatype, before[:size], n.Operand[:size], n.Compare[:size]) {", "if false {"}}},
	{"the last that came to wait is served first", "TestWaitsUnderFaults", []edit{
		{waitingQueues, "\treturn slices.IndexFunc(q.notes, func(n *Note) bool { return !n.Owner.Silent() })\n",
			"\tfor i := len(q.notes) - 1; i >= 0; i-- {\n\t\tif !q.notes[i].Owner.Silent() {\n\t\t\treturn i\n\t\t}\n\t}\n\treturn -1\n"}}},
	{"a wait that was cancelled keeps its place", "TestWaitsUnderFaults", []edit{
		{waitingQueues, "\t\t\tw.remove(i, j)\n\t\t\tbreak\n", "\t\t\t_ = i\n\t\t\tbreak\n"}}},
	{"a region that closes releases nobody who waits", "TestWaitsUnderFaults", []edit{
		{waitingQueues, "\t\t\tn.state.Store(uint32(Closed))\n\t\t}\n\t}\n\tw.mu.Unlock()\n", "\t\t\t_ = n\n\t\t}\n\t}\n\tw.mu.Unlock()\n"}}},
	{"what waits outlives its session", "TestWaitsUnderFaults", []edit{
		{executorWaiting, "\t\t\ts.waits.all[i].note.End(waiting.Closed)\n", "\t\t\t_ = i\n"}}},
	{"a dead program is served", "TestWaitsUnderFaults", []edit{
		{executorWaiting, "return s.silent.Load() }", "return false }"}}},
	{"a copy of a question keeps a dead program alive", "TestWaitsUnderFaults", []edit{
		{sessionTickets, "if wire.Diff(h.PSN, t.asks) <= 0 {", "if false {"}}},
	{"the limit of a wait is not looked at", "TestWaitsUnderFaults", []edit{
		{executorWaiting, "p.deadline != 0 && p.deadline <= now", "p.deadline < 0"}}},
	{"the end of a wait is forgotten before its caller knows it", "TestWaitsUnderFaults", []edit{
		{executorWaiting, "t.Kind == wire.TicketTaken && w.all[i].ended()", "w.all[i].ended()"}}},
	{"news of a wait that got lost is not asked for", "TestWaitsUnderFaults", []edit{
		{engineTicket, "\t\tif now >= x.at {\n", "\t\tif now < 0 {\n"}}},
	{"the receipt of an end is never told", "TestWaitsUnderFaults", []edit{
		{engineTicket, "\tx.due, x.at = false, now+takenAfter\n", "\tx.due, x.at = false, math.MaxInt64\n"}}},
	{"a wait is told its end twice", "TestWaitsUnderFaults", []edit{
		{engineTicket, "\tx.f = nil\n\tf.tell(t)\n", "\tf.tell(t)\n"}}},
	{"a restart does not release those who wait", "TestWaitsUnderFaults", []edit{
		{engineTicket, "\t\t\tf.fail(r)\n\t\t\t(&fragment{f: f}).settle()\n\t\t}\n\t\tx.settleQuiets()", "\t\t\t_ = r\n\t\t}\n\t\tx.settleQuiets()"}}},
	{"a cancelled wait is not cancelled at the target", "TestWaitsUnderFaults", []edit{
		{executorWaiting, "\t\tw.all[i].note.End(waiting.Cancelled)\n", ""}}},
	{"the changes of another program are not looked at", "TestWaitsInForeignMemory", []edit{
		{executorWaiting, "\t\ts.lookAgain()\n", ""}}},
	{"what a guest waits for hinders a takeover", "TestGuestsWaitUnderFaults", []edit{
		{shareWait, "\t\tf.recall(&f.ops[i], replaced)\n", "\t\t_ = i\n"}}},
	{"a guest's recall is not passed on", "TestGuestsWaitUnderFaults", []edit{
		{shareWait, "\t\t\tf.recall(o, recalled)\n", ""}}},
	{"a guest that dies keeps its place", "TestGuestsWaitUnderFaults", []edit{
		{shareHostRing, "\tfor _, p := range f.peers {\n\t\tf.close(p)\n\t}\n", ""}}},
}
