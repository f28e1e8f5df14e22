// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"encoding/binary"
	"reflect"

	"github.com/xdpfab/xdpfab/atomic"
)

// Number is the constraint on the type of a remote word: Go's integers and floats, and
// types made of them.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// DatatypeOf returns the datatype that a Go type has on the wire: atomic.Uint32 for
// uint32, say, and for int the integer type of the same size on this machine.
func DatatypeOf[T Number]() atomic.Datatype {
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

// toBytes returns the value's bytes as they are on the wire.
func toBytes[T Number](v T) (b [8]byte) {
	binary.LittleEndian.PutUint64(b[:], bitsOf(v))
	return b
}

// fromBytes is the inverse of toBytes.
func fromBytes[T Number](b [8]byte) T { return ofBits[T](binary.LittleEndian.Uint64(b[:])) }
