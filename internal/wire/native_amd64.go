// SPDX-License-Identifier: Apache-2.0

package wire

import "golang.org/x/sys/cpu"

// native reports whether the CPU has the instructions of checksumNative. Written only
// here and by tests.
var native = cpu.X86.HasSSE42 && cpu.X86.HasPCLMULQDQ

// powers[n] advances a CRC state over n words: the state times powers[n], without
// carries, is a word whose CRC is the new state. So powers[n] is x^(64n-33) modulo the
// polynomial, the bit of the highest power first: the word has 33 powers more than the
// product.
//
//lint:ignore U1000 native_amd64.s reads it
var powers = func() (p [129]uint64) {
	const polynomial = 0x82f63b78
	state := uint64(1) << 31 // x^0
	for n, power := 1, 0; n < len(p); n++ {
		for ; power < 64*n-33; power++ {
			low := state & 1
			state = state>>1 ^ polynomial*low
		}
		p[n] = state
	}
	return p
}()

// checksumNative is Checksum by instructions of our own. The frame has at least MinFrame
// bytes, and fewer than 2^17.
//
//go:noescape
func checksumNative(frame []byte) uint32
