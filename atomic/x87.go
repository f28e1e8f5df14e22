// SPDX-License-Identifier: Apache-2.0

package atomic

import "math/bits"

// A long double is held as a word128: lo is the 64-bit significand with its
// explicit integer bit, the low 16 bits of hi are sign and biased exponent, the
// upper 48 bits are padding. See Intel SDM volume 1, 4.2.2 and 8.2.2.
const (
	x87Bias    = 16383
	x87MaxExp  = 0x7fff
	x87Sign    = 0x8000
	x87Integer = 1 << 63
)

var (
	x87NaN = word128{lo: 3 << 62, hi: x87MaxExp}
	x87Inf = word128{lo: x87Integer, hi: x87MaxExp}
)

var longDoubleAlgebra = algebra[word128]{
	add:   x87Add,
	sub:   func(a, b word128) word128 { return x87Add(a, x87Negate(b)) },
	mul:   x87Mul,
	less:  x87Less,
	equal: x87Equal,
	truth: func(a word128) bool { return a.lo != 0 || x87IsNaN(a) },
	one:   word128{lo: x87Integer, hi: x87Bias},
}

var longDoubleParts = parts[word128]{
	isNaN: x87IsNaN,
	isInf: x87IsInf,
	copySign: func(mag, sign word128) word128 {
		return word128{mag.lo, mag.hi&x87MaxExp | sign.hi&x87Sign}
	},
	inf: x87Inf,
}

// x87IsNaN is true for NaNs and for the encodings that the x87 refuses as
// invalid operands: a nonzero exponent without the integer bit (unnormals,
// pseudo-infinities, pseudo-NaNs).
func x87IsNaN(a word128) bool {
	exp := a.hi & x87MaxExp
	return exp != 0 && a.lo&x87Integer == 0 || exp == x87MaxExp && a.lo != x87Integer
}

func x87IsInf(a word128) bool {
	return a.hi&x87MaxExp == x87MaxExp && a.lo == x87Integer
}

func x87Negate(a word128) word128 { return word128{a.lo, a.hi ^ x87Sign} }

// x87Exp is the biased exponent that scales the significand: subnormals and
// pseudo-denormals (exponent 0) have that of the smallest normals.
func x87Exp(a word128) int { return max(int(a.hi&x87MaxExp), 1) }

// x87Less compares values, so it ignores padding and sees -0 as +0.
func x87Less(a, b word128) bool {
	if x87IsNaN(a) || x87IsNaN(b) || a.lo|b.lo == 0 {
		return false
	}
	aNeg, bNeg := a.hi&x87Sign != 0, b.hi&x87Sign != 0
	switch {
	case aNeg != bNeg:
		return aNeg
	case aNeg:
		a, b = b, a
	}
	ea, eb := x87Exp(a), x87Exp(b)
	return ea < eb || ea == eb && a.lo < b.lo
}

func x87Equal(a, b word128) bool {
	if x87IsNaN(a) || x87IsNaN(b) || a.lo != b.lo {
		return false
	}
	return a.lo == 0 || x87Exp(a) == x87Exp(b) && (a.hi^b.hi)&x87Sign == 0
}

func x87Add(a, b word128) word128 {
	switch {
	case x87IsNaN(a) || x87IsNaN(b):
		return x87NaN
	case x87IsInf(a):
		if x87IsInf(b) && (a.hi^b.hi)&x87Sign != 0 {
			return x87NaN
		}
		return word128{a.lo, a.hi & 0xffff}
	case x87IsInf(b):
		return word128{b.lo, b.hi & 0xffff}
	}
	// Order by magnitude, so that the difference below is never negative.
	ea, eb := x87Exp(a), x87Exp(b)
	if ea < eb || ea == eb && a.lo < b.lo {
		a, b, ea, eb = b, a, eb, ea
	}
	sign := a.hi & x87Sign
	big, small := word128{hi: a.lo}, shiftRightJam(word128{hi: b.lo}, ea-eb)
	if (a.hi^b.hi)&x87Sign != 0 {
		d := sub128(big, small)
		if d == (word128{}) {
			sign = 0 // an exact zero difference is +0 when rounding to nearest
		}
		return x87Round(sign, ea, d)
	}
	s := add128(big, small)
	if s.hi < big.hi { // carry out: at most one bit
		s = shiftRightJam(s, 1)
		s.hi |= x87Integer
		ea++
	}
	return x87Round(sign, ea, s)
}

func x87Mul(a, b word128) word128 {
	sign := (a.hi ^ b.hi) & x87Sign
	switch {
	case x87IsNaN(a) || x87IsNaN(b):
		return x87NaN
	case x87IsInf(a) || x87IsInf(b):
		if a.lo == 0 || b.lo == 0 {
			return x87NaN
		}
		return word128{x87Inf.lo, x87Inf.hi | sign}
	}
	hi, lo := bits.Mul64(a.lo, b.lo)
	return x87Round(sign, x87Exp(a)+x87Exp(b)-x87Bias+1, word128{lo, hi})
}

// x87Round rounds the magnitude m * 2^(exp-x87Bias-127) to nearest even, where m
// is any 128-bit integer whose lowest bit may stand for what was shifted out.
func x87Round(sign uint64, exp int, m word128) word128 {
	if m == (word128{}) {
		return word128{hi: sign}
	}
	// Normalise; then denormalise if the exponent is too small.
	shift := bits.LeadingZeros64(m.hi)
	if m.hi == 0 {
		shift = 64 + bits.LeadingZeros64(m.lo)
	}
	m = shiftLeft(m, shift)
	exp -= shift
	if exp < 1 {
		m = shiftRightJam(m, 1-exp)
		exp = 1
	}
	sig := m.hi
	if m.lo > x87Integer || m.lo == x87Integer && sig&1 == 1 {
		sig++
		if sig == 0 {
			sig = x87Integer
			exp++
		}
	}
	if exp >= x87MaxExp {
		return word128{x87Inf.lo, x87Inf.hi | sign}
	}
	if sig&x87Integer == 0 { // only a subnormal can lack the integer bit here
		exp = 0
	}
	return word128{sig, sign | uint64(exp)}
}

// shiftLeft shifts by 0 to 127 bits.
func shiftLeft(a word128, n int) word128 {
	if n >= 64 {
		return word128{0, a.lo << (n - 64)}
	}
	return word128{a.lo << n, a.hi<<n | a.lo>>(64-n)}
}

// shiftRightJam shifts right by any n >= 0 and keeps the lowest bit set if a one
// was shifted out, so that a later rounding still sees "not exact".
func shiftRightJam(a word128, n int) word128 {
	var r word128
	switch {
	case n == 0:
		return a
	case n >= 128:
	case n >= 64:
		r.lo = a.hi >> (n - 64)
	default:
		r = word128{a.lo>>n | a.hi<<(64-n), a.hi >> n}
	}
	if n >= 128 && a != (word128{}) || n < 128 && shiftLeft(r, n) != a {
		r.lo |= 1
	}
	return r
}
