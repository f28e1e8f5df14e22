// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// RecordReader walks the records of a request's payload, checking every length and every bit on the way.
//
// A frame is executed as a whole or not at all: an executor first runs Validate, then the reader.
type RecordReader struct {
	rest   []byte
	key    uint64 // of the last atomic record
	left   int    // records still to come
	hasKey bool
	padded bool // zeros may follow the last record
	reason Reason
}

// Validate reports whether payload holds exactly ops well-formed records.
func Validate(payload []byte, ops int) Reason {
	var (
		r   RecordReader
		rec Record
	)
	r.Reset(payload, ops)
	for r.Next(&rec) {
	}
	return r.reason
}

// Reset starts over at a payload of ops records, as Parse returned them.
func (r *RecordReader) Reset(payload []byte, ops int) {
	*r = RecordReader{rest: payload, left: ops, padded: len(payload) == minPayload}
}

// Reason says, after Next returned false, why: ReasonOK when all records were read and nothing but permitted padding
// follows them.
func (r *RecordReader) Reason() Reason { return r.reason }

// Next decodes the next record into rec. Fields that do not belong to the record's verb keep stale values, except
// that Operand and Compare are nil where an atomic record has none. It returns false at the end and at the first
// malformed record; after that it keeps returning false.
func (r *RecordReader) Next(rec *Record) bool {
	if r.left <= 0 {
		return r.finish()
	}
	p := r.rest
	if len(p) < minRecord {
		return r.refuse(ReasonTruncated)
	}
	head := binary.LittleEndian.Uint32(p)
	rec.Verb, rec.Op, rec.Datatype, rec.Flags = uint8(head), uint8(head>>8), uint8(head>>16), uint8(head>>24)
	if !isAtomic(rec.Verb) {
		return r.nextOther(rec)
	}
	if rec.Flags > knownRecordFlags {
		return r.refuse(ReasonBadFlags)
	}
	size := elemSize[rec.Datatype]
	if size == 0 {
		return r.refuse(ReasonBadDatatype)
	}
	n := int(fixedLen[rec.Flags&knownRecordFlags])
	if len(p) < n {
		return r.refuse(ReasonTruncated)
	}
	if reason := r.fixed(rec, p[4:n]); reason != ReasonOK {
		return r.refuse(reason)
	}
	return r.operands(rec, p[n:], uint64(rec.Count)*uint64(size))
}

// fixed decodes the fields between the head and the operand: p has just the length that the flags ask for.
func (r *RecordReader) fixed(rec *Record, p []byte) Reason {
	le := binary.LittleEndian
	if rec.Flags&RecordKey != 0 {
		r.key, r.hasKey = le.Uint64(p), true
		p = p[8:]
	} else if !r.hasKey {
		return ReasonNoKey
	}
	rec.Key = r.key
	if rec.Flags&RecordOff64 != 0 {
		rec.Offset = le.Uint64(p)
		p = p[8:]
	} else {
		rec.Offset = uint64(le.Uint32(p))
		p = p[4:]
	}
	rec.Count = 1
	if rec.Flags&RecordCount != 0 {
		rec.Count = le.Uint32(p)
		p = p[4:]
	}
	rec.Total = rec.Count
	if rec.Flags&RecordTotal != 0 {
		rec.Total = le.Uint32(p)
	}
	if rec.Count == 0 || rec.Total < rec.Count {
		return ReasonBadCount
	}
	return ReasonOK
}

// operands takes the operand and the compare operand, n bytes each, off the front of p, and moves on.
func (r *RecordReader) operands(rec *Record, p []byte, n uint64) bool {
	rec.Operand, rec.Compare = nil, nil
	padded := (n + 3) &^ 3 // no overflow: n < 2^38
	if rec.Op != OpRead {
		if uint64(len(p)) < padded {
			return r.refuse(ReasonTruncated)
		}
		rec.Operand = p[:n:n]
		if !zeroPad(p, n) {
			return r.refuse(ReasonBadPadding)
		}
		p = p[padded:]
	}
	if rec.Verb == VerbCompare {
		if uint64(len(p)) < padded {
			return r.refuse(ReasonTruncated)
		}
		rec.Compare = p[:n:n]
		if !zeroPad(p, n) {
			return r.refuse(ReasonBadPadding)
		}
		p = p[padded:]
	}
	r.rest = p
	r.left--
	return true
}

// zeroPad reports whether the bytes from n to the next multiple of four are zero.
func zeroPad(p []byte, n uint64) bool {
	if n&3 == 0 {
		return true
	}
	return checkZero(p[n:(n+3)&^3]) == ReasonOK
}

// nextOther decodes the records that are not atomic. The record has at least minRecord bytes, its head is in rec.
func (r *RecordReader) nextOther(rec *Record) bool {
	p := r.rest
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
		r.rest = p[4+pad4(n):]
	case VerbList:
		if rec.Op|rec.Datatype|rec.Flags != 0 {
			return r.refuse(ReasonBadPadding)
		}
		rec.Ordinal = binary.LittleEndian.Uint32(p[4:])
		r.rest = p[8:]
	default:
		return r.refuse(ReasonBadVerb)
	}
	rec.Op, rec.Datatype, rec.Flags = 0, 0, 0
	r.left--
	return true
}

// finish judges what is left behind the last record.
func (r *RecordReader) finish() bool {
	if r.reason == ReasonOK {
		r.reason = tailReason(r.padded, r.rest)
	}
	return false
}

// refuse ends the walk.
func (r *RecordReader) refuse(reason Reason) bool {
	r.reason, r.left = reason, 0
	return false
}
