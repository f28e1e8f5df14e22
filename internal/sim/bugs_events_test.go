// SPDX-License-Identifier: Apache-2.0

package sim

const (
	engineNotice = "internal/engine/notice.go"
	memoryNotice = "internal/memory/notice.go"
)

// Bugs of the events at the targets of operations with data.
var bugsOfEvents = []bug{
	{"an event again for a frame that comes again", "", []edit{
		{executorSession, "\ts.notices = s.notices[:0]\n", "\tif h.Type != wire.Request || wire.Diff(h.PSN, s.Ran().PSN) > 0 {\n\t\ts.notices = s.notices[:0]\n\t}\n"}}},
	{"an event before its operation is executed", "", []edit{
		{enginePack, "case f.sent >= f.elements():\n", "case f.Flags&FlagData != 0 && !f.noted:\n"}}},
	{"an event of an operation that failed in part", "", []edit{
		{memoryNotice, "if n.Covers > m.lasting(i) {", "if false {"}}},
	{"the place of an event that does not come is kept", "", []edit{
		{executorSession, "\t\ts.places.Return()\n", ""}}},
	{"a frame for whose event there is no place runs without it", "", []edit{
		{executorSession, "\t\treturn session.NoPlace, wire.ReasonOK\n", "\t\ts.Executed(nil, 0, ops, 0)\n\t\treturn session.Execute, wire.ReasonOK\n"},
		{executorSession, "\t\ts.Unbuffer(b)\n\t\ts.Wait(", "\t\tm.Execute(b, s.streak)\n\t\ts.Unbuffer(b)\n\t\ts.Wait("}}},
	{"a stand-in whose notice was never sent succeeds later", "", []edit{
		{engineFlight, "(!f.notices() || f.noted)", "true"},
		{enginePack, "f.sent >= f.elements():", "f.sent >= f.elements() && !f.noted:"}}},
	{"a target grants events for an endpoint that takes none", "", []edit{
		{engineHello, "f &^= wire.FeatureNotices", "f &^= 0"}}},
}
