// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/xdpfab/xdpfab/atomic"
)

// value holds the bits of one element of at most 16 bytes, with which the model
// of a word computes. It shares nothing with the kernels.
type value struct{ lo, hi uint64 }

// dataTypes are the datatypes of words in a typed world. Operands are small
// whole numbers, which all of them represent exactly.
var dataTypes = []atomic.Datatype{
	atomic.Int8, atomic.Uint16, atomic.Int32, atomic.Uint64, atomic.Int64,
	atomic.Float, atomic.Double, atomic.Int128, atomic.Uint128,
}

// encode returns n as an element.
func encode(t atomic.Datatype, n uint64) []byte {
	b := make([]byte, 16)
	switch t {
	case atomic.Float:
		n = uint64(math.Float32bits(float32(n)))
	case atomic.Double:
		n = math.Float64bits(float64(n))
	}
	binary.LittleEndian.PutUint64(b, n)
	return b[:t.Size()]
}

// decode reads an element.
func decode(t atomic.Datatype, b []byte) value {
	var whole [16]byte
	copy(whole[:], b[:t.Size()])
	return value{binary.LittleEndian.Uint64(whole[:]), binary.LittleEndian.Uint64(whole[8:])}
}

// change returns the value that an operation makes of another.
func change(code uint8, t atomic.Datatype, v, operand, compare value) value {
	switch code {
	case uint8(atomic.Sum):
		return add(t, v, operand)
	case uint8(atomic.Write):
		return operand
	case uint8(atomic.Max):
		if less(t, v, operand) {
			return operand
		}
	case uint8(atomic.Min):
		if less(t, operand, v) {
			return operand
		}
	case uint8(atomic.SumAtMost):
		if s := add(t, v, operand); !less(t, s, v) && !less(t, compare, s) { // operands are not negative
			return s
		}
	case uint8(atomic.DiffAtLeast):
		if least := add(t, compare, operand); !less(t, v, least) { // both are small
			return value{lo: v.lo - operand.lo, hi: v.hi}
		}
	case uint8(atomic.Cswap):
		if v == compare {
			return operand
		}
	case wipe:
		return value{}
	}
	return v
}

// bound makes a compare-and-swap of an integer, now and then, an operation with a bound.
func (o *op) bound() {
	switch o.compare % 4 {
	case 0:
		o.code, o.compare = uint8(atomic.SumAtMost), 20-o.compare // lets some pass and some not
	case 1:
		o.code, o.compare = uint8(atomic.DiffAtLeast), o.compare/4
	}
}

func add(t atomic.Datatype, a, b value) value {
	switch t {
	case atomic.Float:
		f := math.Float32frombits(uint32(a.lo)) + math.Float32frombits(uint32(b.lo))
		return value{lo: uint64(math.Float32bits(f))}
	case atomic.Double:
		return value{lo: math.Float64bits(math.Float64frombits(a.lo) + math.Float64frombits(b.lo))}
	case atomic.Int128, atomic.Uint128:
		lo, carry := bits.Add64(a.lo, b.lo, 0)
		return value{lo, a.hi + b.hi + carry}
	}
	return value{lo: (a.lo + b.lo) << unused(t) >> unused(t)}
}

// less compares values with at most their lower 64 bits set, unless it
// is negative.
func less(t atomic.Datatype, a, b value) bool {
	switch t {
	case atomic.Float:
		return math.Float32frombits(uint32(a.lo)) < math.Float32frombits(uint32(b.lo))
	case atomic.Double:
		return math.Float64frombits(a.lo) < math.Float64frombits(b.lo)
	case atomic.Int8, atomic.Int32, atomic.Int64:
		return int64(a.lo<<unused(t)) < int64(b.lo<<unused(t))
	case atomic.Int128, atomic.Uint128:
		return a.hi == b.hi && a.lo < b.lo
	}
	return a.lo < b.lo
}

// unused is how many of 64 bits a type does not use.
func unused(t atomic.Datatype) uint { return uint(64 - 8*t.Size()) }

func (v value) String() string {
	if v.hi == 0 {
		return fmt.Sprintf("%#x", v.lo)
	}
	return fmt.Sprintf("%#x%016x", v.hi, v.lo)
}
