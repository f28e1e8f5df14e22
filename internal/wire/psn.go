// SPDX-License-Identifier: Apache-2.0

package wire

// Frame sequence numbers count modulo 2^32 (serial numbers, RFC 1982). A comparison is
// meaningful for numbers less than 2^31 apart; windows are many orders of magnitude
// smaller.

// Diff returns how far a is ahead of b; negative when it is behind.
func Diff(a, b uint32) int32 { return int32(a - b) }
