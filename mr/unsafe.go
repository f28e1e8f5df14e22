// SPDX-License-Identifier: Apache-2.0

package mr

import "unsafe"

// addressOf returns where b lies. The number stays true only as long as the memory stays put: mapped memory always
// does, memory of the Go heap while it is pinned.
func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }
