// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"math"
)

// run holds what the writer knows of the last record, if more operations can join
// it.
//
// A record of one element begins like a run of one: its offset lies where a run has its
// count, so that it becomes a run when the second one comes.
//
//	alone    head, key, offset, operands
//	shared   head, key, count, operands, offset, offset, …
//	apart    head, key, count, offset, operands, offset, operands, …
type run struct {
	n        uint32 // operations in it; 0: none can join
	head     uint32 // verb, operation, datatype
	at       int    // of the head, in the payload
	operands int    // of the shared operands, or of the last ones
	end      int    // of the same
	value    uint8  // what each takes of the response: the padded length of the value, or more
	shared   bool   // begun, with operands that all operations have in common
	alike    uint8  // in a run apart: how many of the last operations repeated the operands before them
	more     uint32 // operations that Extend may still add
	operand  uint64 // that they must have
}

// endRun ends the run: the next record begins another.
func (w *RecordWriter) endRun() { w.run.n, w.run.more = 0, 0 }

// like reports whether a record, which needs no key and no other field, has the head of
// the run.
func (r *run) like(rec *Record) bool { return headOf(rec) == r.head }

// join adds an operation to the run, or begins another record if its operands do not
// suit. It reports whether there was room.
func (w *RecordWriter) join(rec *Record, value int) bool {
	r, size := &w.run, int(elemSize[rec.Datatype])
	if rec.Op != OpRead && len(rec.Operand) != size || rec.Verb == VerbCompare && len(rec.Compare) != size {
		return false
	}
	given := r.end - r.operands
	same := w.sameOperands(rec, size)
	if r.n > 1 && r.unsuited(same) {
		w.endRun()
		return w.array(rec, 1)
	}
	if r.n == 1 {
		if !w.begin(same, given, value) {
			return false
		}
	}
	need := 4
	if !r.shared {
		need += given
	}
	b := w.reserve(need, value)
	if b == nil {
		return false
	}
	binary.LittleEndian.PutUint32(b, uint32(rec.Offset))
	if !r.shared {
		putOperands(b[4:], rec, size)
		r.operands, r.end = w.n+4, w.n+need
	}
	r.n++
	binary.LittleEndian.PutUint32(w.buf[w.countAt():], r.n)
	w.commit(need, value)
	w.open()
	return true
}

// open lets Extend add to the run, until there is no room, if its operations share one
// operand of 8 bytes, or have none.
func (w *RecordWriter) open() {
	r := &w.run
	r.more, r.operand = 0, 0
	switch n := r.end - r.operands; {
	case !r.shared || n != 0 && n != 8:
		return
	case n == 8:
		r.operand = binary.LittleEndian.Uint64(w.buf[r.operands:])
	}
	r.more = uint32(min((len(w.buf)-w.n)/4, w.room/int(r.value), MaxOps-w.ops))
}

// mostAlike is how many operations in a row may repeat the operands before them
// until a run apart ends: from then on, a run with shared operands is shorter.
const mostAlike = 2

// unsuited reports whether an operation had better begin another record, given
// whether it has the shared operands or, where each has its own, the last ones.
func (r *run) unsuited(same bool) bool {
	if r.shared {
		return !same
	}
	if r.alike++; !same {
		r.alike = 0
	}
	return r.alike > mostAlike
}

// begin makes a run of a record that stands alone, if a second operation will fit.
func (w *RecordWriter) begin(shared bool, given, value int) bool {
	r := &w.run
	need := 8
	if !shared {
		need += given
	}
	if w.reserve(need, value) == nil {
		return false
	}
	offset := w.buf[w.countAt():][:4]
	if shared {
		copy(w.buf[w.n:], offset)
		w.buf[r.at+3] |= RecordRun | RecordShared
	} else {
		copy(w.buf[r.operands+4:], w.buf[r.operands:r.end])
		copy(w.buf[r.operands:], offset)
		r.operands, r.end = r.operands+4, r.end+4
		w.buf[r.at+3] |= RecordRun
	}
	w.n += 4
	r.shared = shared
	return true
}

// Extend appends one more operation to a run of at least two, whose operations have this
// operand of 8 bytes in common, or, with operand 0, may have none. It does as Append
// would, in a fraction of the time. It returns false and does nothing if the run is not
// of this kind or there is no room: then Append decides.
//
// It is inlined: any more in it would make it a call. Slices of four bytes need fewer
// checks than open ones.
func (w *RecordWriter) Extend(offset, operand uint64) bool {
	r := &w.run
	if r.more == 0 || operand != r.operand || offset > math.MaxUint32 {
		return false
	}
	binary.LittleEndian.PutUint32(w.buf[w.n:w.n+4:w.n+4], uint32(offset))
	r.more--
	r.n++
	binary.LittleEndian.PutUint32(w.buf[r.operands-4:r.operands:r.operands], r.n)
	w.n += 4
	w.room -= int(r.value)
	w.ops++
	return true
}

// Room returns where Extend would put the offsets of further operations with this
// operand, 4 bytes each, for as many as fit. The caller puts some there and calls Joined.
func (w *RecordWriter) Room(operand uint64) []byte {
	if operand != w.run.operand {
		return nil
	}
	return w.buf[w.n:][:4*w.run.more]
}

// Joined makes operations part of the run, one or more, whose offsets are in place.
func (w *RecordWriter) Joined(n uint32) {
	r := &w.run
	r.more -= n
	r.n += n
	binary.LittleEndian.PutUint32(w.buf[r.operands-4:], r.n)
	w.n += 4 * int(n)
	w.room -= int(r.value) * int(n)
	w.ops += int(n)
}

// countAt returns where the run has its count.
func (w *RecordWriter) countAt() int {
	return w.run.at + int(fixedLen[w.buf[w.run.at+3]]) - 4
}

// sameOperands reports whether the operation has the shared operands of the run, or the
// last ones.
func (w *RecordWriter) sameOperands(rec *Record, size int) bool {
	have := w.buf[w.run.operands:w.run.end]
	if size == 8 && len(have) == 8 && rec.Verb != VerbCompare { // nearly always
		return binary.LittleEndian.Uint64(have) == binary.LittleEndian.Uint64(rec.Operand)
	}
	if rec.Op != OpRead {
		if !bytes.Equal(have[:size], rec.Operand) {
			return false
		}
		have = have[size:]
	}
	return rec.Verb != VerbCompare || bytes.Equal(have, rec.Compare)
}
