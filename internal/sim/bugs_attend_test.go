// SPDX-License-Identifier: Apache-2.0

package sim

const (
	sessionHand      = "internal/session/target_hand.go"
	executorAttended = "internal/executor/attended.go"
	shareAttendant   = "internal/share/attendant.go"
)

// Bugs of frames that a guest executes.
var bugsOfAttending = []bug{
	{"a duplicate of a frame that is with a guest is handed over again", "", []edit{
		{sessionWait, "(t.waits || t.handed > 0) && t.heldMask", "t.waits && t.handed == 0 && t.heldMask"}}},
	{"a frame runs here though one before it is with a guest", "", []edit{
		{executorAttended, "if !foreign && s.Handed() == 0 && s.attendant.Alone() {", "if !foreign && s.attendant.Alone() {"},
		{sessionTarget, "\t\tt.ahead |= 1 << (t.turn & slotMask)\n", "\t\tt.ahead |= 1 << (t.turn & slotMask)\n\t\tt.unhold(t.turn)\n"}}},
	{"what a guest that died had is said not to have run", "TestGuestTakeover", []edit{
		{sessionEnd, "if (t.handed+t.unanswered > 0 || t.away != 0) && t.Ended() {", "if t.handed > 0 && !t.Ended() {"}}},
	{"a session that is frozen forgets what a guest has of it", "", []edit{
		{sessionEnd, "psn := t.expected + t.handed; t.heldMask&^t.handedMask() != 0;", "psn := t.expected; t.heldMask != 0;"},
		{sessionEnd, "t.frozen, t.heardAt = true, now\n", "t.frozen, t.heardAt, t.handed = true, now, 0\n"}}},
	{"the next host hands everything over again", "TestGuestTakeover", []edit{
		{sessionTakeover, "Lane: t.lane, Handed: t.handed,", "Lane: t.lane,"}}},
	{"an answer is taken for that of the frame behind", "", []edit{
		{shareAttendant, "last := copy(t.tickets, t.tickets[1:])", "last := len(t.tickets) - 1\n\tfirst = t.tickets[last]"}}},
	{"the session goes on before the answer of the frame before has come", "", []edit{
		{executorAttended, "if s.Handed() == 0 && !s.attendant.Attends() && s.attendant.Alone() {", "if !s.attendant.Attends() || len(payload)%16 == 0 {"}}},
	{"an early frame keeps the buffer of the one that is to be handed over", "", []edit{
		{sessionHand, "return !t.Ahead() && t.dropLast() && t.hold(", "return false && t.hold("}}},
	{"the place of an event is lost with its session", "", []edit{
		{executorAttended, "\t\tif s.recheck(payload, ops) {\n\t\t\ts.places.Return()\n\t\t}\n", "\t\t_, _ = payload, ops\n"}}},
	{"a session that has ended keeps the buffers of what a guest has that died", "", []edit{
		{executorMessages, "s.ticketed() > 0 && s.attendant.Gone()", "false"}}},
	{"a record of a run has the operand of the one before", "", []edit{
		{shareAttendant, "\t\t\trec.Element(i)\n", "\t\t\trec.Element(max(i-1, 0))\n"}}},
}
