// SPDX-License-Identifier: Apache-2.0

package wire

// Frame sequence numbers count modulo 2^32 (serial numbers, RFC 1982). A comparison is meaningful for numbers less
// than 2^31 apart; windows are many orders of magnitude smaller.

// Diff returns how far a is ahead of b; negative when it is behind.
func Diff(a, b uint32) int32 { return int32(a - b) }

// Before reports whether a comes before b.
func Before(a, b uint32) bool { return Diff(a, b) < 0 }

// After reports whether a comes after b.
func After(a, b uint32) bool { return Diff(a, b) > 0 }

// Later returns the later of two numbers.
func Later(a, b uint32) uint32 {
	if After(b, a) {
		return b
	}
	return a
}

// InWindow reports whether psn is one of the n numbers that start at base.
func InWindow(psn, base, n uint32) bool { return psn-base < n }
