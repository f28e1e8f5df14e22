// SPDX-License-Identifier: Apache-2.0

package share

import (
	"encoding/binary"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Operations on memory that only the guest has mapped are executed by the guest: a
// record of kindOperate has those of a frame, each with its operands behind it, and an
// entry with VerbAnswer answers all of them. Host and guest know nothing of each other's
// version of the wire.

// operationHead is what stands before the operands of an operation, little-endian.
// Operands and compare operands follow, and then zeros up to a multiple of operandAlign.
type operationHead struct {
	Key, Offset        uint64
	Count              uint32 // elements; bytes of a transfer
	Total              uint32 // elements that must lie within the region, of which these are the first
	Incarnation        uint32 // of the region that is meant, 0 for any
	Operand, Compare   uint32 // bytes
	Verb, Op, Datatype uint8
	_                  [9]byte
}

const (
	operationLen = 48
	operandAlign = 8
)

// said is what stands at the beginning of an answer for each operation; the results
// follow, without gaps.
type said struct {
	Length uint16 // of the result, bytes
	Status wire.Status
	_      [1]byte
}

const saidLen = 4

// mostAnswer is the longest answer, bytes: no frame is as long.
const mostAnswer = wire.MaxOps*saidLen + 1<<14

// appendOperation appends an operation with its operands.
func appendOperation(b []byte, rec *wire.Record) []byte {
	le := binary.LittleEndian
	n := len(b)
	b = le.AppendUint64(b, rec.Key)
	b = le.AppendUint64(b, rec.Offset)
	b = le.AppendUint32(b, rec.Count)
	b = le.AppendUint32(b, rec.Total)
	b = le.AppendUint32(b, rec.Incarnation)
	b = le.AppendUint32(b, uint32(len(rec.Operand)))
	b = le.AppendUint32(b, uint32(len(rec.Compare)))
	b = append(b, uint8(rec.Verb), rec.Op, rec.Datatype)
	b = append(b, make([]byte, operationLen-len(b)+n)...)
	b = append(b, rec.Operand...)
	b = append(b, rec.Compare...)
	for (len(b)-n)%operandAlign != 0 {
		b = append(b, 0)
	}
	return b
}

// nextOperation takes an operation off b, and returns what follows. Its operands are
// views of b. It returns false if b ends too early.
func nextOperation(b []byte, rec *wire.Record) (rest []byte, ok bool) {
	if len(b) < operationLen {
		return nil, false
	}
	le := binary.LittleEndian
	operand, compare := uint64(le.Uint32(b[28:])), uint64(le.Uint32(b[32:]))
	end := (operationLen + operand + compare + operandAlign - 1) &^ (operandAlign - 1)
	if end > uint64(len(b)) {
		return nil, false
	}
	*rec = wire.Record{Key: le.Uint64(b), Offset: le.Uint64(b[8:]), Count: le.Uint32(b[16:]), Total: le.Uint32(b[20:]),
		Incarnation: le.Uint32(b[24:]), Verb: wire.Verb(b[36]), Op: b[37], Datatype: b[38]}
	rec.Operand = b[operationLen : operationLen+operand]
	rec.Compare = b[operationLen+operand : operationLen+operand+compare]
	return b[end:], true
}

// putSaid writes the head of the answer to an operation.
func putSaid(b []byte, status wire.Status, length int) {
	binary.LittleEndian.PutUint16(b, uint16(length))
	b[2], b[3] = uint8(status), 0
}

// saidAt reads the head number i of an answer.
func saidAt(answer []byte, i int) said {
	b := answer[i*saidLen:]
	return said{Length: binary.LittleEndian.Uint16(b), Status: wire.Status(b[2])}
}
