// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 && !arm64

package atomic

import "unsafe"

// native16 is false here: the lock table serves elements of 16 bytes.
var native16 = false

// load128 and cas128 are not reached while native16 is false.
func load128(unsafe.Pointer) (lo, hi uint64) { panic("atomic: no 16-byte load on this architecture") }

func cas128(p unsafe.Pointer, oldLo, oldHi, newLo, newHi uint64) (swapped bool) {
	panic("atomic: no 16-byte exchange on this architecture")
}
