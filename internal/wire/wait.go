// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// A VerbWait record is a compare atomic on one word that waits at the target until its
// condition holds. It has one form, without optional fields:
//
//	offset size
//	     0    4  verb, operation, datatype, 0
//	     4    4  limit, microseconds; all ones for none
//	     8    8  key
//	    16    8  offset, bytes
//	    24    8  operand, and
//	    32    8  compare operand: as many of the lower bytes as the datatype has, others 0
//	    40    4  incarnation; 0 for any that has the key
//
// Its value is a Ticket: TicketRan with the value before, or TicketParked.

// WaitLen is the length of a VerbWait record, MaxWait that of its word, bytes.
const (
	WaitLen = 44
	MaxWait = 8
)

// NoLimit is the limit of an operation that waits as long as its session lasts.
const NoLimit = ^uint32(0)

// wait encodes a VerbWait record.
func (w *RecordWriter) wait(rec *Record) bool {
	w.endRun()
	size := int(elemSize[rec.Datatype])
	if size == 0 || size > MaxWait || len(rec.Operand) != size || len(rec.Compare) != size {
		return false
	}
	b := w.reserve(WaitLen, TicketLen)
	if b == nil {
		return false
	}
	clear(b[24:40])
	le := binary.LittleEndian
	le.PutUint32(b, headOf(rec))
	le.PutUint32(b[4:], rec.Limit)
	le.PutUint64(b[8:], rec.Key)
	le.PutUint64(b[16:], rec.Offset)
	copy(b[24:], rec.Operand)
	copy(b[32:], rec.Compare)
	le.PutUint32(b[40:], rec.Incarnation)
	w.commit(len(b), TicketLen)
	return true
}

// nextWait decodes a VerbWait record. p, from the record on, has at least minRecord
// bytes; the head is in rec.
func (r *RecordReader) nextWait(rec *Record, p []byte) bool {
	n := int(elemSize[rec.Datatype])
	switch {
	case rec.Flags != 0:
		return r.refuse(ReasonBadFlags)
	case n == 0 || n > MaxWait:
		return r.refuse(ReasonBadDatatype)
	case len(p) < WaitLen:
		return r.refuse(ReasonTruncated)
	case checkZero(p[24+n:32]) != ReasonOK || checkZero(p[32+n:40]) != ReasonOK:
		return r.refuse(ReasonBadPadding)
	}
	le := binary.LittleEndian
	rec.Limit, rec.Key, rec.Offset = le.Uint32(p[4:]), le.Uint64(p[8:]), le.Uint64(p[16:])
	rec.Operand, rec.Compare = p[24:24+n:24+n], p[32:32+n:32+n]
	rec.Incarnation, rec.Count, rec.Total = le.Uint32(p[40:]), 1, 1
	r.pos += WaitLen
	r.left--
	r.uses |= FeatureWaits
	return true
}
