// SPDX-License-Identifier: Apache-2.0

package matching

import "unsafe"

// misaligned reports whether the address of b is no multiple of align, a power of two.
// The memory does not move: a buffer that is posted is on the heap, or mapped.
func misaligned(b []byte, align int) bool {
	return uintptr(unsafe.Pointer(unsafe.SliceData(b)))&uintptr(align-1) != 0
}
