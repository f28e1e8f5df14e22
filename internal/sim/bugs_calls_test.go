// SPDX-License-Identifier: Apache-2.0

package sim

const (
	executorCall = "internal/executor/call.go"
	sessionCall  = "internal/session/target_call.go"
	sessionMoves = "internal/session/takeover.go"
	shareCallee  = "internal/share/callee.go"
)

// Bugs of calls, which a function answers.
var bugsOfCalls = []bug{
	{"a call that came early is kept, and runs again", "TestCallsUnderFaults", []edit{
		{sessionCall, "\tif t.heldMask&(1<<(t.turn&slotMask)) != 0 {\n", "\tif false {\n"}}},
	{"a call is answered with the reply to another one", "TestCallsUnderFaults", []edit{
		{executorCall, "\t\ts.Return(psn)\n", "\t\tfor x := psn - session.MaxWindow + 1; x != psn; x++ {\n\t\t\tif s.Away()&(1<<(x%session.MaxWindow)) != 0 && x-psn > 1<<31 {\n\t\t\t\tpsn = x\n\t\t\t\tbreak\n\t\t\t}\n\t\t}\n\t\ts.Return(psn)\n"}}},
	{"the reply is not in the cache of answers", "TestCallsUnderFaults", []edit{
		{executorCall, "s.Executed(b, r.Put(b), 1, 0)", "r.Put(b)\n\t\ts.Executed(b, 0, 1, 0)"}}},
	{"a call that has begun is said not to have run when its session ends", "TestCallsUnderFaults", []edit{
		{sessionEnd, "(t.handed+t.unanswered > 0 || t.away != 0) && t.Ended()", "t.handed+t.unanswered > 0 && t.Ended()"}}},
	{"a call that a guest has is forgotten at a takeover", "TestCallsToGuestsUnderFaults", []edit{
		{sessionMoves, "\tif t.away = s.Away; s.Ordered {\n", "\tif s.Ordered {\n"}}},
	{"a session without order forgets at a takeover that it keeps one", "TestCallsToGuestsUnderFaults", []edit{
		{sessionMoves, "\tif t.away = s.Away; s.Ordered {\n", "\tif t.away = s.Away; false {\n"}}},
	{"a guest's reply does not end its request", "TestCallsToGuestsUnderFaults", []edit{
		{shareCallee, "\tc.away &^= 1 << i\n", ""}}},
}
