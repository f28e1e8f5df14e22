// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// RefusedOp describes an operation that failed, for those who look into a node. Its zero
// value describes none.
type RefusedOp struct {
	Status Status
	Verb   Verb   // 0 if it is not known
	Key    uint64 // of an operation on memory
	Offset uint64 // bytes
	Bytes  uint64 // from there on, that have to lie within the region
	name   [MaxNameLen]byte
	length uint8
}

// Describe describes the operation of a record.
func (o *RefusedOp) Describe(rec *Record, s Status) {
	*o = RefusedOp{Status: s, Verb: rec.Verb}
	switch {
	case rec.Verb.Array():
		o.Key, o.Offset = rec.Key, rec.Offset
		o.Bytes = uint64(rec.Total) * uint64(elemSize[rec.Datatype])
	case rec.Verb == VerbLookup:
		o.length = uint8(copy(o.name[:], rec.Name))
	}
}

// Name returns the name that was looked up; empty if none was.
func (o *RefusedOp) Name() string { return string(o.name[:o.length]) }

// EachStatus calls f for each status in the payload of a response that Finish has
// returned with FlagStatus.
func EachStatus(payload []byte, f func(Status)) {
	if len(payload) < 2 {
		return
	}
	list := payload[2:]
	for n := binary.LittleEndian.Uint16(payload); n > 0 && len(list) >= statusEntry; n-- {
		f(Status(list[1]))
		list = list[statusEntry:]
	}
}
