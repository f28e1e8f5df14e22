// SPDX-License-Identifier: Apache-2.0

package sim

// Bugs of sessions without order.
var bugsOfOrder = []bug{
	{"an early frame is due again when the gap before it fills", "", []edit{
		{sessionTarget, "\t\tt.ahead &^= 1 << (t.expected & slotMask)\n\t\tt.expected++\n", "\t\tt.ahead &^= 1 << (t.expected & slotMask)\n"}}},
	{"what ran early is forgotten when the ack moves", "", []edit{
		{sessionTarget, "\tif t.freed != freed {\n", "\tif t.freed != freed {\n\t\tt.ahead = 0\n"}}},
	{"a copy of an early frame runs", "", []edit{
		{sessionTarget, "case d > 0 && t.ahead&bit != 0:", "case d > 0 && t.ahead&bit != 0 && t.frozen:"}}},
	{"what ran early is not told when a session is settled", "", []edit{
		{sessionEnd, "t.sack(t.ahead)}", "0}"}}},
	{"early frames of a frozen session run", "", []edit{
		{sessionTarget, "case d >= 0 && t.frozen:", "case (d == 0 || d > 0 && !t.anyOrder) && t.frozen:"}}},
	{"an early answer without results is an ack", "", []edit{
		{sessionAnswer, "a.buf == nil && t.ahead&(1<<(psn&slotMask)) == 0 {", "a.buf == nil {"}}},
}
