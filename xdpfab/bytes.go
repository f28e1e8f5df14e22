// SPDX-License-Identifier: Apache-2.0

package xdpfab

// Bytes returns the values as a buffer of Msg or of a call such as Endpoint.Atomic
// holds them: one element after the other, little-endian.
func Bytes[T Element](values ...T) []byte { return AppendBytes(nil, values...) }

// AppendBytes appends the values to a buffer as Bytes does, so that one buffer can serve
// again and again.
func AppendBytes[T Element](buf []byte, values ...T) []byte {
	return append(buf, bytesOf(values)...)
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
	return copy(bytesOf(values), buf[:n*size]) / size
}

// elementOf returns the element in a buffer, 0 if there is none.
func elementOf[T Element](b []byte) T {
	var word [wide]byte
	copy(word[:], b)
	return fromBytes[T](word)
}
