// SPDX-License-Identifier: Apache-2.0

package mr

import "unsafe"

// addressOf returns the address of b. The number is right only as long as the memory
// does not move: mapped memory never does, nor does memory of the Go heap while it is
// pinned.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// wordAt returns the first bytes of b as a T. There are enough of them, and they lie
// where a T may lie.
func wordAt[T any](b []byte) *T { return (*T)(unsafe.Pointer(unsafe.SliceData(b))) }
