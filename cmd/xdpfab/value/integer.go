// SPDX-License-Identifier: Apache-2.0

package value

import (
	"fmt"
	"math/big"
	"regexp"

	"github.com/xdpfab/xdpfab/atomic"
)

// integer describes an integer datatype.
type integer struct {
	bits   uint
	signed bool
}

var integers = map[atomic.Datatype]integer{
	atomic.Int8: {8, true}, atomic.Uint8: {8, false},
	atomic.Int16: {16, true}, atomic.Uint16: {16, false},
	atomic.Int32: {32, true}, atomic.Uint32: {32, false},
	atomic.Int64: {64, true}, atomic.Uint64: {64, false},
	atomic.Int128: {128, true}, atomic.Uint128: {128, false},
}

// integerText matches the numbers that big.Int reads with base 0, without underscores,
// octal and binary: a leading zero is a decimal digit here.
var integerText = regexp.MustCompile(`^([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)$`)

// limits returns the least and the greatest value.
func (t integer) limits() (least, most *big.Int) {
	one := big.NewInt(1)
	if !t.signed {
		return new(big.Int), new(big.Int).Sub(new(big.Int).Lsh(one, t.bits), one)
	}
	half := new(big.Int).Lsh(one, t.bits-1)
	return new(big.Int).Neg(half), new(big.Int).Sub(half, one)
}

func (t integer) parse(b []byte, s string) error {
	m := integerText.FindStringSubmatch(s)
	if m == nil {
		return fmt.Errorf("%w: want an integer, decimal or 0x…", ErrSyntax)
	}
	digits, base := m[2], 10
	if len(digits) > 2 && digits[1]|0x20 == 'x' {
		digits, base = digits[2:], 16
	}
	n, _ := new(big.Int).SetString(m[1]+digits, base)
	if least, most := t.limits(); n.Cmp(least) < 0 || n.Cmp(most) > 0 {
		return fmt.Errorf("%w: want %v to %v", ErrRange, least, most)
	}
	if n.Sign() < 0 { // two's complement
		n.Add(n, new(big.Int).Lsh(big.NewInt(1), t.bits))
	}
	putLittle(b, n)
	return nil
}

func (t integer) text(b []byte) string {
	n := little(b)
	if t.signed && n.Bit(int(t.bits)-1) == 1 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), t.bits))
	}
	return n.String()
}
