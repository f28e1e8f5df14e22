// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "encoding/binary"

// wordOfBits returns the bits of an integer, without a sign.
func wordOfBits[T Integer](v T) U128 {
	b := toBytes(v)
	return U128{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
}

// bitsOf is the inverse of wordOfBits. Bits that T lacks do not count.
func bitsOf[T Integer](n U128) T {
	var b [wide]byte
	binary.LittleEndian.PutUint64(b[:], n.Lo)
	binary.LittleEndian.PutUint64(b[8:], n.Hi)
	return fromBytes[T](b)
}

// left shifts by fewer than 128 bits.
func (n U128) left(by int) U128 {
	if by >= 64 {
		return U128{0, n.Lo << (by - 64)}
	}
	return U128{n.Lo << by, n.Hi<<by | n.Lo>>(64-by)}
}

// right shifts by fewer than 128 bits.
func (n U128) right(by int) U128 {
	if by >= 64 {
		return U128{n.Hi >> (by - 64), 0}
	}
	return U128{n.Lo>>by | n.Hi<<(64-by), n.Hi >> by}
}

// low returns the lowest bits, 1 to 128 of them.
func (n U128) low(width int) U128 {
	if width >= 64 {
		return U128{n.Lo, n.Hi & (1<<(width-64) - 1)}
	}
	return U128{n.Lo & (1<<width - 1), 0}
}
