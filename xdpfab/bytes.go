// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "slices"

// Bytes returns the values as a buffer of Msg or of a call such as Endpoint.Atomic
// holds them: one element after the other, little-endian.
func Bytes[T Element](values ...T) []byte { return AppendBytes(nil, values...) }

// AppendBytes appends the values to a buffer as Bytes does, so that one buffer can serve
// again and again.
func AppendBytes[T Element](buf []byte, values ...T) []byte {
	size := DatatypeOf[T]().Size()
	buf = slices.Grow(buf, len(values)*size)
	for _, v := range values {
		word := toBytes(v)
		buf = append(buf, word[:size]...)
	}
	return buf
}

// Values returns the elements in a buffer, such as Msg.Result. Bytes at the end that
// make no whole element are left out.
func Values[T Element](buf []byte) []T {
	size := DatatypeOf[T]().Size()
	values := make([]T, len(buf)/size)
	ReadBytes(buf, values)
	return values
}

// ReadBytes reads as many elements from a buffer as both it and values hold, and returns
// how many, so that one slice can serve again and again.
func ReadBytes[T Element](buf []byte, values []T) int {
	size := DatatypeOf[T]().Size()
	n := min(len(values), len(buf)/size)
	for i := range n {
		values[i] = elementOf[T](buf[i*size : (i+1)*size])
	}
	return n
}

// elementOf returns the element in a buffer, 0 if there is none.
func elementOf[T Element](b []byte) T {
	var word [wide]byte
	copy(word[:], b)
	return fromBytes[T](word)
}
