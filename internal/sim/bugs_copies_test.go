// SPDX-License-Identifier: Apache-2.0

package sim

const (
	wireFit        = "internal/wire/fit.go"
	enginePieces   = "internal/engine/pieces.go"
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
	{"a part of a read is not copied", "", []edit{
		{memoryTransfer, "\t\tatomic.ReadBytes(value, target)\n", "\t\tif rec.Total == rec.Count {\n\t\t\tatomic.ReadBytes(value, target)\n\t\t}\n"}}},
}
