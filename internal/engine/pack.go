// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// packFrame fills one frame. It returns false when nothing could be packed.
func (r *remote) packFrame(b []byte) bool {
	e, c := r.e, r.conn
	w := &e.writer
	w.Reset(b, len(b))
	segs := e.takeSegments()
	for r.head != nil {
		op := r.head
		if n := len(segs); n > 0 && op.follows(segs[n-1].op) && extend(w, op, op.Offset) {
			segs = append(segs, segment{op: op, count: 1, records: 1})
			op.pending = 1
			r.pop()
			continue
		}
		if op.Flags&FlagFence != 0 && op.sent == 0 && (w.Ops() > 0 || c.ini.InFlight() > 0) {
			break
		}
		if !op.whole() {
			if seg := r.packOp(w, op); seg.records > 0 {
				segs = append(segs, seg)
			} else if !op.whole() {
				break // the frame is full
			}
		}
		if op.whole() {
			r.pop()
			if op.pending == 0 {
				op.finish()
			}
		}
	}
	if w.Ops() == 0 {
		e.giveSegments(segs)
		return false
	}
	psn := c.ini.Commit(e.now, b, w.Len(), uint8(w.Ops()))
	c.frames[psn%session.MaxWindow] = segs
	e.count[OpsSent] += uint64(w.Ops())
	e.touch(c, &c.dirty)
	return true
}

// follows reports whether op, of one element, is like the one before it but for
// offset and operands.
func (op *Op) follows(before *Op) bool {
	return op.Verb == before.Verb && op.Opcode == before.Opcode && op.Datatype == before.Datatype &&
		op.Key == before.Key && op.Incarnation == before.Incarnation && op.Verb.Atomic() && op.Count == 1 && op.sent == 0 &&
		op.Flags == 0 && op.Extents == nil && before.Extents == nil && !op.failed
}

// packOp appends as much of op to the frame as it takes. Without records, the frame
// is full, or the operation is done as far as packing goes.
func (r *remote) packOp(w *wire.RecordWriter, op *Op) segment {
	seg := segment{op: op, first: op.sent}
	switch {
	case op.Verb.Atomic() && op.Extents != nil:
		packExtents(w, op, &seg)
	case op.Verb.Atomic():
		rec := wire.Record{Verb: op.Verb, Op: op.Opcode, Datatype: op.Datatype, Key: op.Key, Incarnation: op.Incarnation}
		size := uint64(wire.ElemSize(op.Datatype))
		packArray(w, op, &seg, &rec, op.Offset+uint64(op.sent)*size, op.Count-op.sent)
	default:
		r.packOther(w, op, &seg)
	}
	if seg.records > 0 {
		op.pending++
	} else if w.Ops() == 0 && !op.whole() { // not even an empty frame holds it: a malformed operation
		op.fail(Result{Fate: NotExecuted, Status: wire.StatusBadCount})
	}
	return seg
}

// packArray appends a record of the op's next elements, as many of count as fit,
// which lie at offset. It returns how many.
func packArray(w *wire.RecordWriter, op *Op, seg *segment, rec *wire.Record, offset uint64, count uint32) uint32 {
	rec.Offset, rec.Count, rec.Total = offset, count, count
	if count > 1 {
		if rec.Count = w.Fit(rec); rec.Count == 0 {
			return 0
		}
	}
	size := uint64(wire.ElemSize(op.Datatype))
	lo, hi := uint64(op.sent)*size, uint64(op.sent+rec.Count)*size
	if len(op.Operand) > 0 {
		rec.Operand = op.Operand[lo:hi]
	}
	if len(op.Compare) > 0 {
		rec.Compare = op.Compare[lo:hi]
	}
	if !w.Append(rec) {
		return 0
	}
	op.sent += rec.Count
	seg.count += rec.Count
	seg.records++
	return rec.Count
}

// packExtents appends a record for part of an extent, or records for any number of
// extents of one element.
func packExtents(w *wire.RecordWriter, op *Op, seg *segment) {
	rec := wire.Record{Verb: op.Verb, Op: op.Opcode, Datatype: op.Datatype, Incarnation: op.Incarnation}
	size := uint64(wire.ElemSize(op.Datatype))
	for op.extent < len(op.Extents) && op.sent < op.Count {
		// A copy, and no trust in the sum of the counts: the memory is the poster's, and
		// a poster that changes it too early gets a wrong operation, but no crash.
		x := op.Extents[op.extent]
		if x.Count <= op.within {
			op.extent, op.within = op.extent+1, 0
			continue
		}
		offset, count := x.Offset+uint64(op.within)*size, min(x.Count-op.within, op.Count-op.sent)
		if count > 1 && seg.records > 0 {
			return
		}
		if count == 1 && x.Key == rec.Key && seg.records > 0 && extend(w, op, offset) {
			op.within++
			seg.count++
			seg.records++
			continue
		}
		rec.Key = x.Key
		n := packArray(w, op, seg, &rec, offset, count)
		if op.within += n; n == 0 || count > 1 {
			return
		}
	}
}

// extend appends the op's next element to the run that is being written, if that
// is simple: if its operand is the run's, of 8 bytes.
func extend(w *wire.RecordWriter, op *Op, offset uint64) bool {
	at := int(op.sent) * 8
	if wire.ElemSize(op.Datatype) != 8 || len(op.Operand) < at+8 || len(op.Compare) > 0 || !w.Extend(offset, op.Operand[at:at+8]) {
		return false
	}
	op.sent++
	return true
}

// packOther appends a record of another kind, or notes that a local verb needs none.
func (r *remote) packOther(w *wire.RecordWriter, op *Op, seg *segment) {
	rec := wire.Record{Verb: op.Verb}
	switch op.Verb {
	case VerbConnect: // the session is open, since a frame is being packed
		op.sent = 1
		return
	case VerbWatch: // ends with the session
		op.sent, op.pending = 1, 1
		r.watches = append(r.watches, op)
		r.conn.ini.Watch(r.e.now, true)
		return
	case wire.VerbLookup:
		rec.Name = op.Operand
	case wire.VerbList:
		rec.Ordinal = op.Count
	}
	if w.Append(&rec) {
		op.sent, seg.count, seg.records = 1, 1, 1
	}
}
