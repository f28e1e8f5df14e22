// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"math"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// pack fills frames with the operations that wait, as far as the window allows. While
// more than a few frames are in flight, the last frame stays until it is full.
func (r *remote) pack() {
	c := r.conn
	if c != nil && c.stage.buf != nil {
		if !c.usable() {
			c.unstage()
		} else if r.head == nil && c.ini.InFlight() < busy || r.starved() || r.head != nil && r.head.Verb == VerbFlush {
			c.commit()
		}
	}
	r.flushes()
	if r.head == nil {
		r.fullSince = 0 // what waits later has a give-up time of its own
	}
	if !r.works() || r.starved() {
		return
	}
	if r.refused() {
		r.retry()
	} else if !r.connect() {
		return
	}
	for r.works() && !r.starved() && r.packFrame() {
		r.flushes()
	}
}

// works reports whether there is something to pack.
func (r *remote) works() bool {
	return r.head != nil || r.conn != nil && r.conn.severed > 0 && !r.conn.spent()
}

// starved reports whether there is nothing to pack as long as an operation waits for its
// next part.
func (r *remote) starved() bool {
	return r.head != nil && r.head.starved() && (r.conn == nil || r.conn.severed == 0)
}

// starve takes a remote off the list until its next operation has its next part, or has
// ended.
func (r *remote) starve() {
	r.e.starved[r] = struct{}{}
	r.head.Stream.waits = r
}

// packFrame fills one frame from the queue. It returns false when no other frame can
// follow.
func (r *remote) packFrame() bool {
	c := r.conn
	s := &c.stage
	if s.buf == nil && !c.begin() && !(r.e.reqs.Empty() && r.e.evictSuspended() && c.begin()) {
		return false
	}
	if c.severed > 0 && !c.endMessage() {
		c.commit()
		return true
	}
	for r.head != nil {
		if c.severed > 0 && !c.endMessage() { // a message has just left the queue in its middle
			break
		}
		f := r.head
		if f.Verb == VerbFlush || !s.suits(f) && !f.whole() {
			break
		}
		if f.simple() && !f.whole() && c.put(f) {
			r.pop()
			continue
		}
		if f.Flags&FlagFence != 0 && f.sent == 0 && (s.w.Ops() > 0 || r.owes()) {
			break
		}
		if f.waits(c) {
			break
		}
		if !f.whole() {
			if frag := r.packOp(&s.w, f); frag.records > 0 {
				s.cargo.frags, s.cargo.each = append(s.cargo.frags, frag), mixed
				s.simple, s.last, s.leader = false, kind{}, nil
			} else if !f.whole() {
				break // the frame is full
			}
		}
		if f.whole() {
			r.pop()
			r.abandoned(f)
			if f.pending == 0 {
				f.finish()
			}
		} else if s.w.Full() {
			break
		}
	}
	switch {
	case s.w.Ops() == 0:
		c.unstage()
		return false
	case r.head == nil && s.simple && c.ini.InFlight() >= busy:
		return false
	}
	c.commit()
	return true
}

// owes reports whether an operation in flight has still to be completed: one of the
// present session, or of a session in doubt, whose answers the present one has asked for.
func (r *remote) owes() bool {
	return r.conn.ini.InFlight() > 0 || r.conn.holds() || r.suspended != nil && r.suspended.doubted
}

// packOp appends as much of f to the frame as fits. When it appends no record, either the
// frame is full or nothing of the operation has still to be packed.
func (r *remote) packOp(w *wire.RecordWriter, f *flight) fragment {
	frag := fragment{f: f, first: uint32(f.sent)}
	if f.Flags&FlagStream != 0 {
		f.open()
		defer f.turn()
	}
	switch {
	case f.starved():
	case f.message():
		r.conn.packMessage(w, f, &frag)
	case f.Verb == wire.VerbCall:
		r.conn.packCall(w, f, &frag)
	case f.notices() && !r.conn.ini.Features().Allow(wire.VerbNotice):
		r.conn.lack(f, Result{Outcome: NotExecuted, Reason: session.NoEvents})
	case f.Verb.Transfer() && !r.conn.ini.Features().Allow(f.Verb):
		r.conn.lack(f, Result{Outcome: NotExecuted, Status: wire.StatusUnsupported})
	case f.sent >= f.elements():
		r.conn.packNotice(w, f, &frag)
	case f.Verb.Array() && f.Flags&FlagExtents != 0:
		r.packExtents(w, f, &frag)
	case f.Verb.Array():
		rec := wire.Record{Verb: f.Verb, Op: f.Opcode, Datatype: f.Datatype, Key: f.Key, Incarnation: f.Incarnation}
		size := uint64(wire.ElemSize(f.Datatype))
		r.packArray(w, f, &frag, &rec, f.Offset+f.sent*size, atOnce(f.count()-f.sent))
	default:
		r.packOther(w, f, &frag)
	}
	if frag.records > 0 {
		f.pending++
		if f.notices() || f.Verb == wire.VerbSignal {
			f.cover(r.conn, frag.records)
		}
	} else if w.Ops() == 0 && !f.whole() && !f.starved() { // not even an empty frame holds it: a malformed operation
		f.fail(Result{Outcome: NotExecuted, Status: wire.StatusBadCount})
	}
	return frag
}

// atOnce is how many of n elements a record can be about.
func atOnce(n uint64) uint32 { return uint32(min(n, math.MaxUint32)) }

// packArray appends a record of the operation's next elements, which lie at offset: as
// many of count as fit. It returns their number.
func (r *remote) packArray(w *wire.RecordWriter, f *flight, frag *fragment, rec *wire.Record, offset uint64,
	count uint32) uint32 {
	if count == 0 {
		packNothing(w, f, frag, rec, offset)
		return 0
	}
	operand, compare, n := f.given(count)
	if n < count && f.Flags&FlagPieces != 0 && f.Verb.Transfer() && f.Verb != wire.VerbRead {
		operand, n = r.e.gathered(f, operand, count)
	}
	if n == 0 {
		return 0
	}
	rec.Offset, rec.Count, rec.Total = offset, n, count
	if count > 1 {
		if rec.Count = w.Fit(rec); rec.Count == 0 {
			return 0
		}
	}
	size := int(rec.Count) * wire.ElemSize(f.Datatype)
	rec.Operand, rec.Compare = operand[:min(size, len(operand))], compare[:min(size, len(compare))]
	if f.Verb == wire.VerbSignal {
		rec.Compare = f.signal()
	}
	if !w.Append(rec) {
		return 0
	}
	f.sent += uint64(rec.Count)
	frag.count += rec.Count
	frag.records++
	return rec.Count
}

// packNothing appends the record of a transfer of no bytes, which counts as one unit.
func packNothing(w *wire.RecordWriter, f *flight, frag *fragment, rec *wire.Record, offset uint64) {
	if rec.Offset = offset; f.Verb == wire.VerbSignal {
		rec.Compare = f.signal()
	}
	if f.Verb.Transfer() && w.Append(rec) {
		f.sent, frag.records = 1, 1
	}
}

// packExtents appends a record for part of an extent, or records for any number of
// extents of one element.
func (r *remote) packExtents(w *wire.RecordWriter, f *flight, frag *fragment) {
	rec := wire.Record{Verb: f.Verb, Op: f.Opcode, Datatype: f.Datatype, Incarnation: f.Incarnation}
	size := uint64(wire.ElemSize(f.Datatype))
	for f.extent < len(f.Extents) && f.sent < f.count() {
		// Copy the extent, and do not trust the sum of the counts: the memory is the
		// poster's. A poster that changes it too early gets a wrong operation, but no
		// crash.
		x := f.Extents[f.extent]
		if x.Count <= f.within {
			f.extent, f.within = f.extent+1, 0
			continue
		}
		offset, count := x.Offset+uint64(f.within)*size, min(x.Count-f.within, atOnce(f.count()-f.sent))
		if count > 1 && frag.records > 0 {
			return
		}
		if count == 1 && f.within == 0 && x.Key == rec.Key && frag.records > 0 {
			if n := extendRun(w, f, x.Key); n > 0 {
				frag.count += n
				frag.records += n
				continue
			}
		}
		rec.Key = x.Key
		n := r.packArray(w, f, frag, &rec, offset, count)
		if f.within += n; n == 0 || count > 1 {
			return
		}
	}
}

// extendRun appends the operation's next elements to the run that is being written, as
// long as that is simple: each is an extent of the run's region, and its operand is 8
// bytes long and equal to the run's, or there is none. It returns their number.
//
// packArray would do the same, element by element. With this loop the initiator takes
// half the time for a word of BenchmarkPostFrame of package fi.
func extendRun(w *wire.RecordWriter, f *flight, key uint64) (n uint32) {
	given, compare, most := f.given(atOnce(f.count() - f.sent))
	var operand uint64
	alike := f.Opcode == wire.OpRead
	if !alike {
		if len(compare) > 0 || most == 0 || len(given) != 8*int(most) {
			return 0
		}
		operand = binary.LittleEndian.Uint64(given)
	}
	extents, room := f.Extents[f.extent:], w.Room(operand)
	for ; n < most && int(n) < len(extents) && len(room) >= 4; n++ {
		x := extents[n] // a copy: see packExtents
		if x.Count != 1 || x.Key != key || x.Offset > math.MaxUint32 ||
			!alike && binary.LittleEndian.Uint64(given[8*n:]) != operand {
			break
		}
		binary.LittleEndian.PutUint32(room, uint32(x.Offset))
		room = room[4:]
	}
	if n > 0 {
		w.Joined(n)
		f.extent += int(n)
		f.sent += uint64(n)
	}
	return n
}

// lack fails an operation for which the session lacks a feature. The target may have
// restarted since as one that has it: this side finds out by asking, for the operations
// that follow. The refusal of this one is true all the same: nothing of it can have left
// in this session.
func (c *conn) lack(f *flight, why Result) {
	f.fail(why)
	c.ini.Ask()
	c.progress()
}

// packOther appends a record of a verb that is about no array, or notes that a local verb
// needs none.
func (r *remote) packOther(w *wire.RecordWriter, f *flight, frag *fragment) {
	rec := wire.Record{Verb: f.Verb}
	switch f.Verb {
	case VerbConnect: // the session is open, since a frame is being packed
		f.sent = 1
		return
	case VerbWatch: // ends with the session
		f.sent, f.pending = 1, 1
		r.watches = append(r.watches, f)
		r.conn.ini.Watch(r.e.now, true)
		return
	case wire.VerbWait:
		if r.conn.ini.Features().Allow(f.Verb) {
			if r.conn.packWait(w, f) {
				f.sent, frag.count, frag.records = 1, 1, 1
			}
			return
		}
	case wire.VerbLookup:
		rec.Name = f.Name()
	case wire.VerbList:
		rec.Ordinal = f.Count
	}
	if !r.conn.ini.Features().Allow(f.Verb) { // the target could not read the frame
		r.conn.lack(f, Result{Outcome: NotExecuted, Status: wire.StatusUnsupported})
		return
	}
	if w.Append(&rec) {
		f.sent, frag.count, frag.records = 1, 1, 1
	}
}
