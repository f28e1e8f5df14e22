// SPDX-License-Identifier: Apache-2.0

package wire

// Fit returns how many elements, at most rec.Count, the next record could carry in what
// is left of the frame. A caller that packs a long array in parts sets Total of rec to
// the number of elements still to go, and Count to that or, if it has fewer at hand, to
// their number. A part of a transfer that others follow ends where a word of 8 bytes
// ends, so that no word is divided.
func (w *RecordWriter) Fit(rec *Record) uint32 {
	if w.ops == MaxOps || !rec.Verb.Array() {
		return 0
	}
	whole := max(rec.Count, 1)
	total := max(rec.Total, whole)
	flags := w.flags(rec, whole, total)
	n := min(whole, maxCount(rec.Verb, rec.Op, rec.Datatype, flags, len(w.buf)-w.n, w.room))
	if n < whole {
		// A part of an array says how much follows it, so it is longer than the whole
		// would be.
		n = maxCount(rec.Verb, rec.Op, rec.Datatype, flags|RecordCount|RecordTotal, len(w.buf)-w.n, w.room)
	}
	if n < total && rec.Verb.Transfer() {
		n -= min(n, uint32(rec.Offset+uint64(n))%8)
	}
	return n
}

// maxCount returns how many elements one array record of the given flags can carry, when
// request and response have room for reqRoom and respRoom bytes, the latter after the
// head of the status list. The two bound different things: reqRoom the operands, respRoom
// the result. A read has no operand, and a base atomic has no result. 0 means that not
// even one element fits.
func maxCount(verb Verb, op, datatype, flags uint8, reqRoom, respRoom int) uint32 {
	size := int(elemSize[datatype])
	if size == 0 || respRoom < statusEntry {
		return 0
	}
	room := reqRoom - int(fixedLen[flags]) - verb.tail()
	if room < 0 {
		return 0
	}
	most := MaxFrame / size // a read that asks for no result is bounded by neither room
	if k := verb.operands(op); k > 0 {
		most = min(most, room/k&^3/size)
	}
	if verb.Returns() {
		most = min(most, respRoom&^3/size)
	}
	return uint32(max(most, 0))
}
