// SPDX-License-Identifier: Apache-2.0

package sim

const (
	wireFit        = "internal/wire/fit.go"
	enginePieces   = "internal/engine/pieces.go"
	engineSignal   = "internal/engine/signal.go"
	memorySignal   = "internal/memory/signal.go"
	memoryTransfer = "internal/memory/transfer.go"
)

// bugsOfCopies are bugs of remote reads and writes.
var bugsOfCopies = []bug{
	{"a part of a transfer ends inside a word", "", []edit{
		{wireFit, "if n < total && rec.Verb.Transfer() {", "if false {"}}},
	{"every part of a transfer goes to its first byte", "", []edit{
		{enginePack, "f.Offset+f.sent*size, atOnce", "f.Offset+f.sent*size*uint64(1-uint8(f.Verb)>>4), atOnce"}}},
	{"a part of a write from pieces begins with the first piece", "", []edit{
		{enginePieces, "b := at(f.Pieces.Buf, f.sent+uint64(n), uint64(len(to)-n))", "b := at(f.Pieces.Buf, uint64(n), uint64(len(to)-n))"}}},
	{"the parts of a read are all put at its beginning", "", []edit{
		{engineComplete, "\tif f.Verb.Array() {\n", "\tif f.Verb.Atomic() {\n"}}},
	{"bounds of a transfer checked for the part alone", "", []edit{
		{memoryTransfer, "\trec := &m.rec\n", "\trec := &m.rec\n\trec.Total = rec.Count\n"}}},
	{"the last part of a write is the only one", "", []edit{
		{memoryTransfer, "\t} else {\n", "\t} else if rec.Total == rec.Count {\n"}}},
	{"every part of a write applies its signal", "", []edit{
		{memoryTransfer, "rec.Verb == wire.VerbSignal && rec.Total == rec.Count", "rec.Verb == wire.VerbSignal"}}},
	{"a signal is checked with the last part of its write alone", "", []edit{
		{memoryTransfer, "status != wire.StatusOK {\n\t\t\treturn status", "status != wire.StatusOK && rec.Total == rec.Count {\n\t\t\treturn status"}}},
	{"a signal overtakes the parts of its write", "", []edit{
		{engineSignal, "if f.sent == 0 || ", "if f.sent >= 0 || "}}},
	{"a flush does not wait for what goes over to the next session", "", []edit{
		{engineConn, "return staged == nil || f.Verb != VerbFlush // which is behind what the next session carries", "return true"}}},
	{"a signal passes what is in a former session", "", []edit{
		{engineSignal, "return f.by != c.unit || ", "return "}}},
	{"a signal comes without the last part of its write", "", []edit{
		{memoryTransfer, "\t} else {\n", "\t} else if rec.Verb == wire.VerbWrite || rec.Total != rec.Count {\n"}}},
	{"a signal comes though its write is refused", "", []edit{
		{memoryTransfer, "m.resolve(1, 1)\n\tif status != wire.StatusOK {\n", "m.resolve(1, 1)\n\tif status != wire.StatusOK {\n" +
			"\t\tif rec.Verb == wire.VerbSignal {\n\t\t\tm.signal(&word)\n\t\t}\n"}}},
	{"a signal comes twice", "", []edit{
		{memorySignal, "\tw.kernel(w.bytes, m.operand[:n], nil, nil)\n", "\tfor range 2 {\n\t\tw.kernel(w.bytes, m.operand[:n], nil, nil)\n\t}\n"}}},
	{"a part of a read is not copied", "", []edit{
		{memoryTransfer, "\t\tatomic.ReadBytes(value, target)\n", "\t\tif rec.Total == rec.Count {\n\t\t\tatomic.ReadBytes(value, target)\n\t\t}\n"}}},
}
