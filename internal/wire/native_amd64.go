// SPDX-License-Identifier: Apache-2.0

package wire

import "golang.org/x/sys/cpu"

// native reports whether the CPU has the instructions of checksumNative. Written only
// here and by tests.
var native = cpu.X86.HasSSE42 && cpu.X86.HasPCLMULQDQ

// Methods of checksumNative for long frames.
const (
	byStreams  = iota // three streams of CRC32 instructions
	byProducts        // carry-less products, for CPUs on which CRC32 is slow
	byPairs           // products of two pairs at a time, and streams
)

// method is written only here and by tests.
var method = fastest()

// fastest returns the method that suits the CPU.
func fastest() uint8 {
	if !native {
		return byStreams
	}
	if _, _, features := cpuid(7); cpu.X86.HasAVX2 && features&(1<<10) != 0 {
		return byPairs
	}
	if slowCRC() {
		return byProducts
	}
	return byStreams
}

// slowCRC reports whether the CPU is a Zen of the first generations (family 17h), which
// begins a CRC32 instruction only every third cycle.
func slowCRC() bool {
	const authenticAMD = 0x68747541 // "Auth"
	_, vendor, _ := cpuid(0)
	version, _, _ := cpuid(1)
	return vendor == authenticAMD && version>>8&0xf+version>>20&0xff == 0x17
}

// powers[n] advances a CRC state over n words: the state times powers[n], without
// carries, is a word whose CRC is the new state. So powers[n] is x^(64n-33) modulo the
// polynomial, the bit of the highest power first: the word has 33 powers more than the
// product.
//
//lint:ignore U1000 native_amd64.s reads it
var powers = func() (p [601]uint64) {
	state := uint64(1) << 31 // x^0
	for n, power := 1, 0; n < len(p); n++ {
		state = times(state, 64*n-33-power)
		power = 64*n - 33
		p[n] = state
	}
	return p
}()

// folds moves 16 bytes over 128, 64, 32 and 16 bytes: the first eight times the first of
// a pair, and the second eight times the second one, add up to 16 bytes that stand for
// them there. The 16 bytes of a product hold one power less than their 128 bits, and the
// first eight bytes have 64 powers more than the second, so the pair for n bytes is
// x^(8n+63) and x^(8n-1).
//
//lint:ignore U1000 native_amd64.s reads it
var folds = func() (f [4][2]uint64) {
	for i, n := range []int{128, 64, 32, 16} {
		f[i] = [2]uint64{times(1<<31, 8*n+63) << 32, times(1<<31, 8*n-1) << 32}
	}
	return f
}()

// times returns a state times x^n modulo the polynomial.
func times(state uint64, n int) uint64 {
	const polynomial = 0x82f63b78
	for range n {
		low := state & 1
		state = state>>1 ^ polynomial*low
	}
	return state
}

// cpuid returns what the CPU says of itself in a leaf. A CPU without leaf 7 has no AVX2.
func cpuid(leaf uint32) (eax, ebx, ecx uint32)

// checksumNative is Checksum by instructions of our own. The frame has at least MinFrame
// bytes, and fewer than 2^17.
//
//go:noescape
func checksumNative(frame []byte) uint32
