// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// RecordReader walks the records of a request's payload, checking every length and every
// bit on the way.
//
// A frame is executed as a whole or not at all: an executor asks Rest, before it acts on
// the first record.
type RecordReader struct {
	payload []byte
	pos     int    // of the next record; at most len(payload)
	left    int    // operations still to come
	key     uint64 // of the last array record
	inc     uint32 // of the last array record
	hasKey  bool
	uses    Features // that the records read so far belong to
	reason  Reason
}

// Validate reports whether payload holds exactly ops well-formed records.
func Validate(payload []byte, ops int) Reason {
	var r RecordReader
	r.Reset(payload, ops)
	_, reason := r.Rest()
	return reason
}

// Rest is Validate for the records that Next has not decoded yet; if Next refused a
// record, Rest returns the reason. It also returns the features that the records belong
// to: with FeatureNotices the last record is a notice. The reader stays where it is, so
// that a frame of one record, as most frames are that a caller waits for, is decoded only
// once.
//
// The records of a frame are mostly alike. A record with the same head as the one before
// it, with neither count nor padding, has the same length and needs no check but that it
// is there: Rest steps over a sequence of such records.
func (r RecordReader) Rest() (uses Features, reason Reason) {
	if r.left <= 0 {
		r.finish()
		return r.uses, r.reason
	}
	var rec Record
	for {
		start := r.pos
		if !r.Next(&rec) {
			return r.uses, r.reason
		}
		if rec.Verb.Atomic() && rec.Run == 0 && rec.Flags&(RecordCount|RecordTotal) == 0 &&
			elemSize[rec.Datatype]&3 == 0 {
			r.skipLike(r.payload[start:r.pos])
		}
	}
}

// skipLike steps over the records that follow and have the head and the length of rec, an
// atomic record.
func (r *RecordReader) skipLike(rec []byte) {
	head, stride := binary.LittleEndian.Uint32(rec), len(rec)
	p, left := r.payload[r.pos:], r.left
	for left > 0 && len(p) >= stride && len(p) >= 4 && binary.LittleEndian.Uint32(p) == head {
		p = p[stride:]
		left--
	}
	r.pos, r.left = len(r.payload)-len(p), left
}

// Reset starts over at a payload of ops operations, as Parse returned them.
func (r *RecordReader) Reset(payload []byte, ops int) {
	*r = RecordReader{payload: payload, left: ops}
}

// Reason reports why Next returned false: ReasonOK when all records were read and nothing
// but permitted padding follows them.
func (r *RecordReader) Reason() Reason { return r.reason }

// Next decodes the next record into rec. Fields that do not belong to the record's verb
// keep stale values, except that Operand and Compare are nil where an array record has
// none. It returns false at the end and at the first malformed record; after that it
// keeps returning false.
func (r *RecordReader) Next(rec *Record) bool {
	if r.left <= 0 {
		return r.finish()
	}
	p := r.payload[r.pos:]
	if len(p) < minRecord {
		return r.refuse(ReasonTruncated)
	}
	head := binary.LittleEndian.Uint32(p)
	verb, op, datatype, flags := Verb(head), uint8(head>>8), uint8(head>>16), uint8(head>>24)
	rec.Verb, rec.Op, rec.Datatype, rec.Flags, rec.Run = verb, op, datatype, flags, 0
	if !verb.Atomic() {
		if !verb.Transfer() {
			return r.nextOther(rec, p)
		}
		if reason := rec.transfer(); reason != ReasonOK {
			return r.refuse(reason)
		}
		r.uses |= FeatureMemory
	}
	if flags&^(knownRecordFlags|RecordIncarnation) != 0 {
		return r.nextRun(rec, p)
	}
	n, size := int(fixedLen[flags]), uint64(elemSize[datatype])
	if size == 0 {
		return r.refuse(ReasonBadDatatype)
	}
	if len(p) < n {
		return r.refuse(ReasonTruncated)
	}
	at, reason := r.region(rec, p)
	if reason != ReasonOK {
		return r.refuse(reason)
	}
	rec.Offset = uint64(binary.LittleEndian.Uint32(p[at:]))
	rec.Count, rec.Total = 1, 1
	if flags&recordForm != 0 {
		if reason := rec.getFields(p[at:n]); reason != ReasonOK {
			return r.refuse(reason)
		}
		size *= uint64(rec.Count)
	}
	// nearly all records: one 64-bit operand
	if size == 8 && verb != VerbCompare && op != OpRead && verb != VerbSignal && len(p)-n >= 8 {
		rec.Operand, rec.Compare = p[n:n+8:n+8], nil
		r.pos += n + 8
		r.left--
		return true
	}
	return r.operands(rec, p, n, size)
}

// region decodes which region a record means, and returns the bytes that follow. p is
// long enough for the fields that the flags announce.
func (r *RecordReader) region(rec *Record, p []byte) (at int, reason Reason) {
	at = 4
	if rec.Flags&RecordKey != 0 {
		r.key, r.inc, r.hasKey = binary.LittleEndian.Uint64(p[4:]), 0, true
		at = 12
		if rec.Flags&RecordIncarnation != 0 {
			r.inc = binary.LittleEndian.Uint32(p[12:])
			at = 16
		}
	} else if rec.Flags&RecordIncarnation != 0 {
		return 0, ReasonBadFlags
	} else if !r.hasKey {
		return 0, ReasonNoKey
	}
	rec.Key, rec.Incarnation = r.key, r.inc
	return at, ReasonOK
}

// getFields decodes the offset and the fields behind it: p has exactly the length that
// the flags announce.
func (rec *Record) getFields(p []byte) Reason {
	le := binary.LittleEndian
	if rec.Flags&RecordOff64 != 0 {
		rec.Offset = le.Uint64(p)
		p = p[4:]
	}
	p = p[4:]
	if rec.Flags&RecordCount != 0 {
		rec.Count = le.Uint32(p)
		p = p[4:]
	}
	rec.Total = rec.Count
	if rec.Flags&RecordTotal != 0 {
		rec.Total = le.Uint32(p)
	}
	if rec.Total < rec.Count || rec.Count == 0 && (rec.Total != 0 || !rec.Verb.Transfer()) {
		return ReasonBadCount
	}
	return ReasonOK
}

// transfer checks the head of a transfer but for its flags.
func (rec *Record) transfer() Reason {
	switch {
	case rec.Op != opOf(rec.Verb):
		return ReasonBadPayload
	case rec.Datatype != Byte:
		return ReasonBadDatatype
	}
	return ReasonOK
}

// opOf returns the operation of a transfer.
func opOf(v Verb) uint8 {
	if v == VerbRead {
		return OpRead
	}
	return OpWrite
}

// operands takes the operand and the compare operand, size bytes each, from p[n:], and
// moves on.
func (r *RecordReader) operands(rec *Record, p []byte, n int, size uint64) bool {
	padded := (size + 3) &^ 3 // no overflow: size < 2^38
	all := padded * uint64(rec.Verb.operands(rec.Op))
	if uint64(len(p)-n) < all {
		return r.refuse(ReasonTruncated)
	}
	r.pos += n + int(all)
	r.left--
	v := p[n : n+int(all)]
	rec.Operand, rec.Compare = nil, nil
	if rec.Op != OpRead {
		if !zeroPad(v, size) {
			return r.refuse(ReasonBadPadding)
		}
		rec.Operand, v = v[:size:size], v[padded:]
	}
	if rec.Verb == VerbCompare {
		if !zeroPad(v, size) {
			return r.refuse(ReasonBadPadding)
		}
		rec.Compare = v[:size:size]
	}
	if rec.Verb == VerbSignal {
		return r.signal(rec, p, n+int(all))
	}
	return true
}

// zeroPad reports whether the bytes from n to the next multiple of four are zero.
func zeroPad(p []byte, n uint64) bool {
	if n&3 == 0 {
		return true
	}
	return checkZero(p[n:(n+3)&^3]) == ReasonOK
}

// nextOther decodes the records that are about no array. p, from the record on, has at
// least minRecord bytes; the head is in rec.
func (r *RecordReader) nextOther(rec *Record, p []byte) bool {
	switch rec.Verb {
	case VerbLookup:
		n := int(rec.Op) // name length
		switch {
		case n == 0 || n > MaxNameLen:
			return r.refuse(ReasonBadName)
		case rec.Datatype|rec.Flags != 0:
			return r.refuse(ReasonBadPadding)
		case len(p) < 4+pad4(n):
			return r.refuse(ReasonTruncated)
		case !zeroPad(p[4:], uint64(n)):
			return r.refuse(ReasonBadPadding)
		}
		rec.Name = p[4 : 4+n : 4+n]
		r.pos += 4 + pad4(n)
	case VerbList:
		if rec.Op|rec.Datatype|rec.Flags != 0 {
			return r.refuse(ReasonBadPadding)
		}
		rec.Ordinal = binary.LittleEndian.Uint32(p[4:])
		r.pos += minRecord
	case VerbWait:
		return r.nextWait(rec, p)
	case VerbNotice:
		if !r.nextNotice(rec, p) {
			return false
		}
	default:
		if rec.Verb.reserved() {
			return r.refuse(ReasonReservedVerb)
		}
		return r.refuse(ReasonBadVerb)
	}
	rec.Op, rec.Datatype, rec.Flags = 0, 0, 0
	r.left--
	return true
}

// nextRun decodes a run. p, from the record on, has at least minRecord bytes; the head is
// in rec.
func (r *RecordReader) nextRun(rec *Record, p []byte) bool {
	if rec.Flags&^(RecordKey|RecordIncarnation|RecordShared) != RecordRun || rec.Verb.Transfer() {
		return r.refuse(ReasonBadFlags)
	}
	size := int(elemSize[rec.Datatype])
	if size == 0 || size&3 != 0 {
		return r.refuse(ReasonBadDatatype)
	}
	if len(p) < int(fixedLen[rec.Flags]) {
		return r.refuse(ReasonTruncated)
	}
	at, reason := r.region(rec, p)
	if reason != ReasonOK {
		return r.refuse(reason)
	}
	n := int(binary.LittleEndian.Uint32(p[at:]))
	if n < 2 || n > r.left {
		return r.refuse(ReasonBadCount)
	}
	at += 4
	rec.Offset, rec.Count, rec.Total = 0, 1, 1
	rec.Operand, rec.Compare = nil, nil
	given := rec.Verb.operands(rec.Op) * size
	rec.Run, rec.Stride = n, 4+given
	if rec.Flags&RecordShared != 0 {
		if len(p)-at < given {
			return r.refuse(ReasonTruncated)
		}
		rec.setOperands(p[at:at+given], size)
		rec.Stride = 4
		at += given
	}
	if len(p)-at < n*rec.Stride {
		return r.refuse(ReasonTruncated)
	}
	rec.Each = p[at : at+n*rec.Stride]
	r.pos += at + n*rec.Stride
	r.left -= n
	return true
}

// finish judges the bytes that follow the last record.
func (r *RecordReader) finish() bool {
	if r.reason == ReasonOK {
		r.reason = checkTail(r.payload, r.payload[r.pos:])
	}
	return false
}

// refuse ends the walk.
func (r *RecordReader) refuse(reason Reason) bool {
	r.reason, r.left = reason, 0
	return false
}
