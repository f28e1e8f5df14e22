// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"math"
)

// RecordWriter packs records into the payload of one request. It chooses a short
// encoding, and it accounts for the response as well: a record is accepted only if the
// longest possible response to the frame still fits.
type RecordWriter struct {
	buf    []byte
	n      int // bytes written
	ops    int
	room   int    // bytes left in the response's payload
	most   int    // its longest, bytes
	key    uint64 // of the last array record
	inc    uint32 // of the last array record
	hasKey bool
	run    run
}

// The longest possible response: every record takes its value or, when it fails, an
// entry in the status list, whichever is longer; the head and the padding of the list
// are counted once.
const (
	statusEntry = 2 // record index, status
	statusHead  = 4 // count, and padding of up to two bytes
)

// Reset starts an empty payload in buf: all of it may be used. respRoom is the longest
// payload of the response, bytes; with equal frame limits in both directions it is
// len(buf).
func (w *RecordWriter) Reset(buf []byte, respRoom int) {
	*w = RecordWriter{buf: buf, room: respRoom - statusHead, most: respRoom}
}

// Len returns the bytes written.
func (w *RecordWriter) Len() int { return w.n }

// Answer returns how long the payload of the response is at most, bytes.
func (w *RecordWriter) Answer() int { return w.most - w.room }

// Ops returns the operations written.
func (w *RecordWriter) Ops() int { return w.ops }

// Full reports whether the payload has no room for any record but one that joins a run.
func (w *RecordWriter) Full() bool { return len(w.buf)-w.n < shortestRecord }

// shortestRecord is the length in bytes of a read of one element by the key of the record
// before.
const shortestRecord = 8

// Append encodes one record and reports whether it fits; if it does not, nothing is
// written. Count 0 means 1, but of a transfer none, and Total 0 means Count. A record
// that no frame could hold is refused like one that does not fit this frame: of an
// unknown verb or datatype, with a total below its count, with a name longer than
// MaxNameLen, or with operands of the wrong length.
func (w *RecordWriter) Append(rec *Record) bool {
	switch {
	case rec.Verb.Atomic():
		return w.array(rec, max(rec.Count, 1))
	case rec.Verb.Transfer():
		return rec.transfer() == ReasonOK && (rec.Count > 0 || rec.Total == 0) && w.array(rec, rec.Count)
	case rec.Verb == VerbWait:
		return w.wait(rec)
	case rec.Verb == VerbLookup:
		return w.lookup(rec.Name)
	case rec.Verb == VerbList:
		return w.list(rec.Ordinal)
	}
	return false
}

// array encodes an atomic record, or a transfer, of count elements.
func (w *RecordWriter) array(rec *Record, count uint32) bool {
	size := int(elemSize[rec.Datatype])
	if size == 0 || count > MaxFrame || rec.Total != 0 && rec.Total < count {
		return false
	}
	bytes := int(count) * size
	padded, value := pad4(bytes), 0
	if rec.Verb.Returns() {
		value = padded
	}
	flags := w.flags(rec, count, rec.Total)
	if w.run.n != 0 {
		if flags == 0 && w.run.like(rec) {
			return w.join(rec, value)
		}
		w.endRun()
	}
	fixed := int(fixedLen[flags])
	b := w.reserve(fixed+rec.Verb.operands(rec.Op)*padded+rec.Verb.tail(), value)
	if b == nil || !putOperands(b[fixed:], rec, bytes) {
		return false
	}
	le := binary.LittleEndian
	le.PutUint32(b, headOf(rec)|uint32(flags)<<24)
	at := 4
	if flags&RecordKey != 0 {
		le.PutUint64(b[4:], rec.Key)
		w.key, w.inc, w.hasKey = rec.Key, rec.Incarnation, true
		at = 12
	}
	if flags&RecordIncarnation != 0 {
		le.PutUint32(b[12:], rec.Incarnation)
		at = 16
	}
	le.PutUint32(b[at:], uint32(rec.Offset))
	if flags&recordForm != 0 {
		putFields(b[at:fixed], flags, rec.Offset, count, rec.Total)
	}
	if flags&recordForm == 0 && bytes&3 == 0 {
		w.run = run{n: 1, head: headOf(rec), at: w.n, operands: w.n + fixed, end: w.n + len(b),
			value: uint8(max(value, statusEntry))}
	}
	w.commit(len(b), value)
	return true
}

// putOperands writes the operands that the record needs, bytes each, into b, which is
// long enough. It reports false when the record does not have them.
func putOperands(b []byte, rec *Record, bytes int) bool {
	if rec.Op != OpRead {
		if len(rec.Operand) != bytes {
			return false
		}
		b = putPadded(b, rec.Operand)
	}
	switch {
	case rec.Verb == VerbCompare && len(rec.Compare) != bytes,
		rec.Verb == VerbSignal && len(rec.Compare) != SignalLen:
		return false
	case rec.Verb == VerbCompare, rec.Verb == VerbSignal:
		putPadded(b, rec.Compare)
	}
	return true
}

// flags chooses the fields that the record needs here.
func (w *RecordWriter) flags(rec *Record, count, total uint32) (f uint8) {
	if !w.hasKey || rec.Key != w.key || rec.Incarnation != w.inc {
		f |= RecordKey
		if rec.Incarnation != 0 {
			f |= RecordIncarnation
		}
	}
	if rec.Offset > math.MaxUint32 {
		f |= RecordOff64
	}
	if count != 1 {
		f |= RecordCount
	}
	if total > count {
		f |= RecordTotal
	}
	return f
}

// putFields writes the offset and the fields behind it; b has exactly the length that
// the flags ask for.
func putFields(b []byte, flags uint8, offset uint64, count, total uint32) {
	le := binary.LittleEndian
	if flags&RecordOff64 != 0 {
		le.PutUint64(b, offset)
		b = b[4:]
	}
	b = b[4:]
	if flags&RecordCount != 0 {
		le.PutUint32(b, count)
		b = b[4:]
	}
	if flags&RecordTotal != 0 {
		le.PutUint32(b, total)
	}
}

// putPadded copies v to the front of p, pads it with zeros and returns what follows. p is
// long enough.
func putPadded(p, v []byte) []byte {
	if len(v) == 8 { // the most common operand
		binary.LittleEndian.PutUint64(p, binary.LittleEndian.Uint64(v))
		return p[8:]
	}
	n := pad4(len(v))
	clear(p[len(v):n])
	copy(p, v)
	return p[n:]
}

// lookup encodes the request for a catalogue entry by name.
func (w *RecordWriter) lookup(name []byte) bool {
	w.endRun()
	if len(name) == 0 || len(name) > MaxNameLen {
		return false
	}
	b := w.reserve(4+pad4(len(name)), EntryLen)
	if b == nil {
		return false
	}
	binary.LittleEndian.PutUint32(b, uint32(VerbLookup)|uint32(len(name))<<8)
	putPadded(b[4:], name)
	w.commit(len(b), EntryLen)
	return true
}

// list encodes the request for a catalogue entry by ordinal.
func (w *RecordWriter) list(ordinal uint32) bool {
	w.endRun()
	b := w.reserve(8, EntryLen)
	if b == nil {
		return false
	}
	binary.LittleEndian.PutUint32(b, uint32(VerbList))
	binary.LittleEndian.PutUint32(b[4:], ordinal)
	w.commit(len(b), EntryLen)
	return true
}

// headOf returns the first word of an array record, without flags.
func headOf(rec *Record) uint32 {
	return uint32(rec.Verb) | uint32(rec.Op)<<8 | uint32(rec.Datatype)<<16
}

// reserve returns the next n bytes of the payload, or nil when they, or the response, or
// the count of records do not fit. value is the padded length of the record's value.
func (w *RecordWriter) reserve(n, value int) []byte {
	if n > len(w.buf)-w.n || max(value, statusEntry) > w.room || w.ops == MaxOps {
		return nil
	}
	return w.buf[w.n : w.n+n : w.n+n]
}

// commit makes the reserved bytes part of the payload.
func (w *RecordWriter) commit(n, value int) {
	w.n += n
	w.room -= max(value, statusEntry)
	w.ops++
}
