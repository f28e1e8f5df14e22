// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/wire"

// packCombination appends a tagged atomic: a message of one record, which is in a frame
// as a whole. If the target tells how it ends, the record is the last one of the frame.
func (c *conn) packCombination(w *wire.RecordWriter, f *flight, frag *fragment) {
	m := wire.Message{
		Begins: true, Tagged: true, HasData: f.Flags&FlagData != 0, Match: f.Flags&FlagMatch != 0, Tag: f.Key,
		Data: f.Data, Source: c.r.origin.endpoint,
		Atomic: wire.TaggedAtomic{Form: f.Verb.Form(), Op: f.Opcode, Datatype: f.Datatype, Count: f.Count,
			Offset: f.Offset},
	}
	operand, compare, ok := w.TaggedAtomic(&m)
	if !ok {
		return // packOp fails it, if the frame is empty
	}
	whole, other := f.operands()
	if f.Flags&FlagPieces != 0 && f.Flags&FlagOutside != 0 {
		gather(operand, whole, f.Pieces.Buf)
		gather(compare, other, f.Pieces.Compare)
	} else {
		copy(operand, whole)
		copy(compare, other)
	}
	f.sent, frag.count, frag.records = uint64(f.Count), f.Count, 1
	c.stage.flags = wire.FlagMessages
}
