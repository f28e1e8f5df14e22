// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "unsafe"

// toBytes returns the value's bytes as they are on the wire: as in the memory of a
// little-endian machine; see package atomic for others.
func toBytes[T Element](v T) (b [wide]byte) {
	copy(b[:], unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)))
	return b
}

// fromBytes is the inverse of toBytes.
func fromBytes[T Element](b [wide]byte) (v T) {
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&v)), unsafe.Sizeof(v)), b[:])
	return v
}

// bytesOf returns the memory of the values: their bytes on the wire, if the machine is
// little-endian.
func bytesOf[T Element](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v))*unsafe.Sizeof(*new(T)))
}

// viewOf returns the memory of the values as numbers, each of which is as long as an
// element, or as a half of one.
func viewOf[N Number, T Element](v []T) []N {
	bytes := bytesOf(v)
	return unsafe.Slice((*N)(unsafe.Pointer(unsafe.SliceData(bytes))), uintptr(len(bytes))/unsafe.Sizeof(*new(N)))
}
