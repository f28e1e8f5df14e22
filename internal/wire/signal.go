// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Signal is an atomic without a result on one word, which a VerbSignal record carries
// behind its operand: the target applies it when all bytes of the write are in memory,
// and the two are executed both or neither. Of a write in several records each carries
// it, so that nothing of a write is executed whose signal is refused, and the last one
// applies it.
type Signal struct {
	Key, Offset  uint64 // of the word
	Operand      uint64 // as many of its lower bytes as the datatype has
	Incarnation  uint32 // of the word's region; 0 for any that has the key
	Op, Datatype uint8  // the datatype is one of at most MaxSignal bytes
}

// SignalLen is the length of a signal in a record, and MaxSignal that of its word, bytes.
const (
	SignalLen = 32
	MaxSignal = 8
)

// Put encodes the signal into b, which has SignalLen bytes.
func (s *Signal) Put(b []byte) {
	le := binary.LittleEndian
	le.PutUint64(b, s.Key)
	le.PutUint64(b[8:], s.Offset)
	le.PutUint64(b[16:], s.Operand)
	le.PutUint32(b[24:], s.Incarnation)
	b[28], b[29], b[30], b[31] = s.Op, s.Datatype, 0, 0
}

// SignalAt decodes the signal in b, which has SignalLen bytes.
func SignalAt(b []byte) Signal {
	le := binary.LittleEndian
	return Signal{Key: le.Uint64(b), Offset: le.Uint64(b[8:]), Operand: le.Uint64(b[16:]),
		Incarnation: le.Uint32(b[24:]), Op: b[28], Datatype: b[29]}
}

// signal takes the signal behind the operand of a record, n bytes from its beginning.
func (r *RecordReader) signal(rec *Record, p []byte, n int) bool {
	if len(p) < n+SignalLen {
		return r.refuse(ReasonTruncated)
	}
	rec.Compare = p[n : n+SignalLen : n+SignalLen]
	if rec.Compare[30]|rec.Compare[31] != 0 {
		return r.refuse(ReasonBadPadding)
	}
	r.pos += SignalLen
	r.uses |= FeatureSignals
	return true
}
