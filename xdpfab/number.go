// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"math/bits"
	"reflect"

	"github.com/xdpfab/xdpfab/atomic"
)

// Number allows Go's integers and floats, and types whose underlying type is one.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// Element allows every type that a remote word can have. C's long double has no type in
// Go: [github.com/xdpfab/xdpfab/xdpfab/fi.Msg] takes the bytes of such words.
type Element interface {
	Number | ~complex64 | ~complex128 | U128 | I128
}

// U128 is an unsigned integer of 128 bits (atomic.Uint128).
type U128 struct{ Lo, Hi uint64 }

// I128 is a signed integer of 128 bits, in two's complement (atomic.Int128).
type I128 struct {
	Lo uint64
	Hi int64
}

// wide is the size of the largest element, bytes.
const wide = 16

// DatatypeOf returns the datatype that a Go type has on the wire: atomic.Uint32 for
// uint32, say, and for int the integer type of the same size on this machine.
func DatatypeOf[T Element]() atomic.Datatype {
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.Int8:
		return atomic.Int8
	case reflect.Uint8:
		return atomic.Uint8
	case reflect.Int16:
		return atomic.Int16
	case reflect.Uint16:
		return atomic.Uint16
	case reflect.Int32:
		return atomic.Int32
	case reflect.Uint32:
		return atomic.Uint32
	case reflect.Float32:
		return atomic.Float
	case reflect.Float64:
		return atomic.Double
	case reflect.Complex64:
		return atomic.FloatComplex
	case reflect.Complex128:
		return atomic.DoubleComplex
	case reflect.Struct:
		if t == reflect.TypeFor[I128]() {
			return atomic.Int128
		}
		return atomic.Uint128
	case reflect.Int, reflect.Int64:
		if t.Size() == 4 {
			return atomic.Int32
		}
		return atomic.Int64
	default: // uint, uint64, uintptr
		if t.Size() == 4 {
			return atomic.Uint32
		}
		return atomic.Uint64
	}
}

// inGo returns the name that the type of a datatype has in Go.
func inGo(dt atomic.Datatype) string {
	switch dt {
	case atomic.Float:
		return "float32"
	case atomic.Double:
		return "float64"
	case atomic.FloatComplex:
		return "complex64"
	case atomic.DoubleComplex:
		return "complex128"
	}
	return dt.String()
}

// sum returns what a becomes when b is added to it, as the peer has done.
func sum[T Element](dt atomic.Datatype, a, b T) T {
	x, y := [1]T{a}, [1]T{b}
	addTo(dt, x[:], y[:])
	return x[0]
}

// addTo adds to each word what the peer has added to it. Signed integers wrap around as
// unsigned ones do.
func addTo[T Element](dt atomic.Datatype, words, deltas []T) {
	switch dt {
	case atomic.Float, atomic.FloatComplex:
		addNumbers(viewOf[float32](words), viewOf[float32](deltas))
		return
	case atomic.Double, atomic.DoubleComplex:
		addNumbers(viewOf[float64](words), viewOf[float64](deltas))
		return
	}
	switch dt.Size() {
	case 1:
		addNumbers(viewOf[uint8](words), viewOf[uint8](deltas))
	case 2:
		addNumbers(viewOf[uint16](words), viewOf[uint16](deltas))
	case 4:
		addNumbers(viewOf[uint32](words), viewOf[uint32](deltas))
	case 8:
		addNumbers(viewOf[uint64](words), viewOf[uint64](deltas))
	case 16:
		addPairs(viewOf[uint64](words), viewOf[uint64](deltas))
	}
}

func addNumbers[N Number](words, deltas []N) {
	for i := range words {
		words[i] += deltas[i]
	}
}

// addPairs adds integers of 128 bits, the lower half first.
func addPairs(words, deltas []uint64) {
	var carry uint64
	for i := 0; i+1 < len(words); i += 2 {
		words[i], carry = bits.Add64(words[i], deltas[i], 0)
		words[i+1], _ = bits.Add64(words[i+1], deltas[i+1], carry)
	}
}
