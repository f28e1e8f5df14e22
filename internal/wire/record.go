// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// Flags of an array record, which is an atomic or a transfer: which optional fields
// follow its first four bytes.
const (
	// key u64; without it, key and incarnation are those of the previous array record
	// of the frame
	RecordKey   uint8 = 1 << 0
	RecordOff64 uint8 = 1 << 1 // offset is u64 instead of u32
	RecordCount uint8 = 1 << 2 // count u32; without it 1
	RecordTotal uint8 = 1 << 3 // total u32; without it the count

	knownRecordFlags = RecordKey | RecordOff64 | RecordCount | RecordTotal

	// RecordRun makes one record of many operations on one element each, alike but for
	// offset and operands. It goes with RecordKey, RecordIncarnation and RecordShared
	// only; see Record.Run.
	RecordRun uint8 = 1 << 4
	// RecordShared means that the operations of a run have equal operands, which are
	// given once.
	RecordShared uint8 = 1 << 5
	// RecordIncarnation means that the key is followed by the incarnation (u32) of
	// the region that is meant. It is allowed only with RecordKey.
	RecordIncarnation uint8 = 1 << 6

	// recordForm has the flags that change what follows a record's key.
	recordForm = ^(RecordKey | RecordIncarnation)
)

// OpRead is the one operation whose encoding differs: it has no operand. It is that of
// VerbRead, and OpWrite that of VerbWrite; their datatype is Byte.
const (
	OpRead  uint8 = 10
	OpWrite uint8 = 11
	Byte    uint8 = 1
)

// NumDatatypes is the number of datatypes whose size this version knows.
const NumDatatypes = 20

// elemSize gives the bytes of one element by datatype; zero for unknown ones. It has an
// entry for every value of the byte on the wire, so that indexing it needs no bounds
// check.
var elemSize = [256]uint8{
	1, 1, 2, 2, 4, 4, 8, 8, // int8 uint8 int16 uint16 int32 uint32 int64 uint64
	4, 8, 8, 16, // float double float_complex double_complex
	16, 32, // long_double long_double_complex
	16, 16, // int128 uint128
	2, 2, 1, 1, // float16 bfloat16 float8_e4m3 float8_e5m2
}

// ElemSize returns the size of one element of the datatype in bytes, 0 when the datatype
// is unknown.
func ElemSize(datatype uint8) int { return int(elemSize[datatype]) }

// fixedLen gives the bytes of an array record before its operand, by flags. Flags of
// runs do not count.
var fixedLen = func() (t [256]uint8) {
	for f := range t {
		t[f] = 8
		for bit, extra := range [...]uint8{8, 4, 4, 4, 0, 0, 4} { // key, wider offset, count, total; incarnation
			if f>>bit&1 != 0 {
				t[f] += extra
			}
		}
	}
	return t
}()

// minRecord is the length of the shortest record.
const minRecord = 8

// Record is one operation of a request, decoded or to be encoded; or, when Run is not
// zero, a decoded run.
//
// Operand and Compare hold Count elements each, little-endian, as one view: after
// decoding they point into the frame. An OpRead has no operand; only VerbCompare has a
// compare, and VerbSignal has its Signal, encoded, in its place. Name belongs to
// VerbLookup, Ordinal to VerbList.
type Record struct {
	Verb         Verb
	Op, Datatype uint8
	Flags        uint8  // as found on the wire; the encoder chooses its own
	Count        uint32 // elements in this record
	// elements from this record's first to the end of the caller's array: all must lie
	// within the region
	Total       uint32
	Ordinal     uint32
	Key         uint64
	Incarnation uint32 // of the region that is meant; 0 for any that has the key
	Offset      uint64 // bytes
	Operand     []byte
	Compare     []byte
	Name        []byte
	Limit       uint32 // of VerbWait: microseconds for which it waits at most; NoLimit for none

	// Run is the number of operations of a run, each of one element; 0 for any other
	// record. Offset and, unless they are shared, Operand and Compare are set by Element.
	// Each operation counts as one of the frame's operations, both in the header's ops
	// and in the index of a status.
	Run    int
	Each   []byte // Run times Stride bytes: offset u32 and, unless they are shared, operand and compare
	Stride int    // bytes; 4 when the operands are shared, and therefore in Operand and Compare
}

// Ops returns how many operations the record stands for.
func (rec *Record) Ops() int { return max(rec.Run, 1) }

// Element fills in what sets operation i of a run, from 0 to Ops-1, apart from the
// others. For any other record it does nothing.
func (rec *Record) Element(i int) {
	if rec.Run == 0 {
		return
	}
	e := rec.Each[i*rec.Stride : (i+1)*rec.Stride]
	rec.Offset = uint64(binary.LittleEndian.Uint32(e))
	if rec.Stride > 4 {
		rec.setOperands(e[4:], int(elemSize[rec.Datatype]))
	}
}

// Offsets decodes the offsets of a run's operations into to, which has room for Run of
// them, and returns them.
func (rec *Record) Offsets(to []uint32) []uint32 {
	to = to[:rec.Run]
	each, stride := rec.Each, rec.Stride
	for i := range to {
		to[i] = binary.LittleEndian.Uint32(each)
		each = each[stride:]
	}
	return to
}

// setOperands takes the operand and the compare operand, size bytes each, from p, which
// holds exactly these.
func (rec *Record) setOperands(p []byte, size int) {
	rec.Operand, rec.Compare = nil, nil
	if rec.Op != OpRead {
		rec.Operand, p = p[:size:size], p[size:]
	}
	if rec.Verb == VerbCompare {
		rec.Compare = p[:size:size]
	}
}

// ResultLen returns the length of the record's value in the response, in bytes
// without padding; 0 for no value. For a run it is the length of each operation's
// value.
func (rec *Record) ResultLen() int { return rec.Verb.ResultLen(rec.Datatype, rec.Count) }

// pad4 rounds a length up to the alignment of records and values.
func pad4(n int) int { return (n + 3) &^ 3 }
