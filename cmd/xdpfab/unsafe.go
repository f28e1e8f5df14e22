// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import "unsafe"

// align16 cuts off what is before the first multiple of 16, the most that any
// element wants of its address. b has at least 15 bytes.
func align16(b []byte) []byte {
	return b[-uintptr(unsafe.Pointer(unsafe.SliceData(b)))&15:]
}
