// SPDX-License-Identifier: Apache-2.0

package atomic

import "fmt"

// Datatype names the type of one element, with the values of enum fi_datatype.
// The values travel on the wire and never change.
type Datatype uint8

// The datatypes of fi_atomic(3), in the order of libfabric.
const (
	Int8 Datatype = iota
	Uint8
	Int16
	Uint16
	Int32
	Uint32
	Int64
	Uint64
	Float
	Double
	FloatComplex
	DoubleComplex
	LongDouble        // x87 80-bit extended in 16 bytes
	LongDoubleComplex // two LongDouble, 32 bytes
	Int128
	Uint128
	Float16    // IEEE 754 binary16
	BFloat16   // upper half of a binary32
	Float8E4M3 // OCP OFP8 E4M3: no infinities
	Float8E5M2 // OCP OFP8 E5M2

	// NumDatatypes is one more than the largest Datatype.
	NumDatatypes = iota
)

// datatypes holds the properties of each Datatype; class decides validity.
var datatypes = [NumDatatypes]struct {
	name  string
	size  uint8 // bytes
	class class
}{
	Int8:              {"int8", 1, integer},
	Uint8:             {"uint8", 1, integer},
	Int16:             {"int16", 2, integer},
	Uint16:            {"uint16", 2, integer},
	Int32:             {"int32", 4, integer},
	Uint32:            {"uint32", 4, integer},
	Int64:             {"int64", 8, integer},
	Uint64:            {"uint64", 8, integer},
	Float:             {"float", 4, floating},
	Double:            {"double", 8, floating},
	FloatComplex:      {"float_complex", 8, complexed},
	DoubleComplex:     {"double_complex", 16, complexed},
	LongDouble:        {"long_double", 16, floating},
	LongDoubleComplex: {"long_double_complex", 32, complexed},
	Int128:            {"int128", 16, integer},
	Uint128:           {"uint128", 16, integer},
	Float16:           {"float16", 2, floating},
	BFloat16:          {"bfloat16", 2, floating},
	Float8E4M3:        {"float8_e4m3", 1, floating},
	Float8E5M2:        {"float8_e5m2", 1, floating},
}

// Size returns the size of one element in bytes, 0 for an unknown datatype.
func (dt Datatype) Size() int {
	if dt >= NumDatatypes {
		return 0
	}
	return int(datatypes[dt].size)
}

// Align returns the alignment in bytes that a target element needs, which is C's:
// its size, and for complex types the size of a part; 0 for an unknown datatype.
func (dt Datatype) Align() int {
	if dt < NumDatatypes && datatypes[dt].class == complexed {
		return dt.Size() / 2
	}
	return dt.Size()
}

// String returns the C-like name, such as "uint64" or "float8_e4m3".
func (dt Datatype) String() string {
	if dt >= NumDatatypes {
		return fmt.Sprintf("datatype(%d)", uint8(dt))
	}
	return datatypes[dt].name
}

// ParseDatatype is the inverse of [Datatype.String]. An unknown name gives an
// error that wraps [ErrUnknownName].
func ParseDatatype(s string) (Datatype, error) {
	return parse[Datatype]("datatype", s, NumDatatypes)
}
