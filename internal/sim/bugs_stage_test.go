// SPDX-License-Identifier: Apache-2.0

package sim

const (
	engineStage  = "internal/engine/stage.go"
	engineEngine = "internal/engine/engine.go"
	engineRoster = "internal/engine/roster.go"
	enginePost   = "internal/engine/post.go"
	engineCargo  = "internal/engine/cargo.go"
	engineQuiet  = "internal/engine/quiet.go"
)

// Bugs of the way of an operation from its poster to the frame that it leaves in.
var bugsOfStaging = []bug{
	{"a simple operation goes into the frame ahead of the queue", "", []edit{
		{engineStage, "r.head == nil && r.conn != nil", "r.conn != nil"}}},
	{"what is in the frame is lost when it is given up", "", []edit{
		{engineStage, "s.leader = nil, nil, nil\n\treturn first\n", "s.leader = nil, nil, nil\n\treturn nil\n"}}},
	{"a frame that is given up leaves all the same", "", []edit{
		{engineStage, "c.ini.Unstage(s.buf)\n", "c.ini.Commit(c.r.e.now, s.buf, s.w.Len(), uint8(s.w.Ops()), s.flags)\n"}}},
	{"a frame that is not full is never sent", "", []edit{
		{enginePack, "r.head == nil && c.ini.InFlight() < busy", "false"}}},
	{"a frame that is not full is forgotten when nothing else waits", "", []edit{
		{engineEngine, "case r.conn != nil && r.conn.stage.buf != nil, r.works() && !r.starved():", "case r.works() && !r.starved():"}}},
	{"a direct post overtakes what was published before", "", []edit{
		{enginePost, "if r.head != r.tail.Load() { // what", "if false { // what"}}},
	{"a post that continues a run overtakes what was published before", "", []edit{
		{enginePost, "if r.head != r.tail.Load() { // an", "if false { // an"}}},
	{"a post that continues a run overtakes the queue", "", []edit{
		{enginePost, " || p.r.head != nil {", " {"}}},
	{"a follower's flight has the leader's place", "", []edit{
		{engineCargo, "nil, w.Offset\n", "nil, leader.Offset\n"}}},
	{"a run takes operations with another operand", "", []edit{
		{wireRun, "operand != r.operand ||", ""}}},
	{"a run is continued beyond the room for its answer", "", []edit{
		{wireRun, "w.room/int(r.value), ", ""}}},
	{"an entry that names a closed peer reaches the next one in its place", "", []edit{
		{engineRoster, "p != nil && p.id == id {", "p != nil {"}}},
	{"a flush does not wait for the frames in flight", "", []edit{
		{engineQuiet, "\t\tr.conn.waitFor(x)\n", ""}}},
	{"a flush does not wait for a session in doubt", "", []edit{
		{engineQuiet, "s != nil && s != r.conn {", "s != nil && false {"}}},
	{"a flush does not wait for what is in the frame that is being filled", "", []edit{
		{engineQuiet, "r.head.Verb == VerbFlush && (r.conn == nil || r.conn.stage.buf == nil)", "r.head.Verb == VerbFlush"},
		{enginePack, " || r.head != nil && r.head.Verb == VerbFlush {", " {"}}},
	{"a flush waits for the frames of like answers alone", "", []edit{
		{engineQuiet, "\t\tif g != nil {\n\t\t\tg.quiets", "\t\tif g != nil && g.each != mixed {\n\t\t\tg.quiets"}}},
	{"a flush of a peer waits for another peer", "", []edit{
		{engineQuiet, "\tr.waitFor(x)\n\tx.less()\n}\n\n// waitFor", "\tfor p := range r.origin.roster.all() {\n" +
			"\t\tif p.r != r {\n\t\t\tr = p.r\n\t\t\tbreak\n\t\t}\n\t}\n\tr.waitFor(x)\n\tx.less()\n}\n\n// waitFor"}}},
	{"a flush of all peers passes those without a session", "", []edit{
		{engineQuiet, "p.r.head != nil || p.r.conn != nil {", "p.r.conn != nil {"}}},
	{"an answer that lay in the ring during a stop counts as work", "", []edit{
		{sessionReceive, "max(s.workedAt, r.sentAt)", "now"}}},
}
