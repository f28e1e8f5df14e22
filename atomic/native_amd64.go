// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// native16 reports whether the CPU exchanges 16 bytes; written only here and by
// tests.
var native16 = cpu.X86.HasCX16

// atomicMOVDQA reports whether an aligned 16-byte load is one access. Intel (SDM
// volume 3, 9.1.1) and AMD (APM volume 2, 7.3.2) promise it where there is AVX.
var atomicMOVDQA = cpu.X86.HasAVX

// load128 reads 16 aligned bytes atomically.
func load128(p unsafe.Pointer) (lo, hi uint64) {
	if atomicMOVDQA {
		return loadMOVDQA(p)
	}
	return loadCX16(p)
}

// cas128 is LOCK CMPXCHG16B; p must be a multiple of 16.
//
//go:noescape
func cas128(p unsafe.Pointer, oldLo, oldHi, newLo, newHi uint64) (swapped bool)

//go:noescape
func loadMOVDQA(p unsafe.Pointer) (lo, hi uint64)

// loadCX16 compares with and stores zero, which changes nothing, but needs
// write access to the page.
//
//go:noescape
func loadCX16(p unsafe.Pointer) (lo, hi uint64)

// storePairs stores 16 bytes at a time, loadPairs loads them. The words begin at a
// multiple of 16 and are a multiple of 8, at least 8; the bytes are as long.
//
//go:noescape
func storePairs(to []uint64, from []byte)

//go:noescape
func loadPairs(to []byte, from []uint64)
