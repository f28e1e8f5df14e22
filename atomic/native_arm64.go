// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// native16 reports whether the CPU exchanges 16 bytes (FEAT_LSE, Armv8.1); written only
// here and by tests.
var native16 = cpu.ARM64.HasATOMICS

// load128 reads 16 aligned bytes atomically. A plain load of two words is one access
// from Armv8.4 on only, so this is an exchange of zero for zero, which changes nothing,
// but needs write access to the page.
//
//go:noescape
func load128(p unsafe.Pointer) (lo, hi uint64)

// cas128 is CASPAL; p must be a multiple of 16.
//
//go:noescape
func cas128(p unsafe.Pointer, oldLo, oldHi, newLo, newHi uint64) (swapped bool)
