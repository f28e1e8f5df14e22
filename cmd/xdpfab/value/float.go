// SPDX-License-Identifier: Apache-2.0

package value

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"strings"

	"github.com/xdpfab/xdpfab/atomic"
)

// format describes a binary floating-point format of any width: a sign above an
// exponent above a fraction.
type format struct {
	exp, man int // bits of the exponent; of the significand after its leading bit
	// explicit formats, such as the x87's, store the leading bit, too.
	explicit bool
	// finite formats have no infinities; the one pattern of all ones is NaN.
	finite bool
}

var (
	binary32 = &format{exp: 8, man: 23}
	binary64 = &format{exp: 11, man: 52}
	extended = &format{exp: 15, man: 63, explicit: true}
)

// floats are the real formats, parts those of a complex number's two parts.
var (
	floats = map[atomic.Datatype]*format{
		atomic.Float: binary32, atomic.Double: binary64, atomic.LongDouble: extended,
		atomic.Float16: {exp: 5, man: 10}, atomic.BFloat16: {exp: 8, man: 7},
		atomic.Float8E4M3: {exp: 4, man: 3, finite: true}, atomic.Float8E5M2: {exp: 5, man: 2},
	}
	parts = map[atomic.Datatype]*format{
		atomic.FloatComplex: binary32, atomic.DoubleComplex: binary64, atomic.LongDoubleComplex: extended,
	}
)

// fields are the stored parts of a number; man includes the leading bit only if
// the format is explicit.
type fields struct {
	neg bool
	exp int
	man uint64
}

func (f *format) bias() int   { return 1<<(f.exp-1) - 1 }
func (f *format) maxExp() int { return 1<<f.exp - 1 }

// minScale is the exponent of two of the smallest step: that of the subnormals.
func (f *format) minScale() int { return 1 - f.bias() - f.man }

// leading returns the leading bit of a normal number's significand.
func (f *format) leading() uint64 { return 1 << f.man }

// stored returns how many bits of the significand are stored.
func (f *format) stored() int {
	if f.explicit {
		return f.man + 1
	}
	return f.man
}

// infinity and nan are the canonical special values, for the sign of x.
func (f *format) infinity(neg bool) fields {
	x := fields{neg: neg, exp: f.maxExp()}
	if f.explicit {
		x.man = f.leading()
	}
	return x
}

func (f *format) nan(neg bool) fields {
	x := f.infinity(neg)
	x.man |= f.leading() >> 1 // quiet, and no payload
	if f.finite {
		x.man = f.leading() - 1
	}
	return x
}

// unpack reads a number; ok is false when padding bits are set.
func (f *format) unpack(b []byte) (x fields, ok bool) {
	n, width := little(b), f.stored()
	x.man = new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64>>(64-width))).Uint64()
	rest := new(big.Int).Rsh(n, uint(width))
	x.neg = rest.Bit(f.exp) == 1
	x.exp = int(rest.Uint64() & uint64(f.maxExp()))
	return x, rest.BitLen() <= f.exp+1
}

// pack stores a number; padding becomes zero.
func (f *format) pack(b []byte, x fields) {
	n := big.NewInt(int64(x.exp))
	if x.neg {
		n.SetBit(n, f.exp, 1)
	}
	n.Lsh(n, uint(f.stored()))
	putLittle(b, n.Or(n, new(big.Int).SetUint64(x.man)))
}

// parse stores the number that s names, rounded to nearest, ties to even.
func (f *format) parse(b []byte, s string) error {
	word, neg := strings.TrimPrefix(s, "+"), false
	if word == s {
		word, neg = strings.CutPrefix(s, "-")
	}
	switch strings.ToLower(word) {
	case "nan":
		f.pack(b, f.nan(neg))
		return nil
	case "inf", "infinity":
		if f.finite {
			return fmt.Errorf("%w: this datatype has no infinity, only nan", ErrRange)
		}
		f.pack(b, f.infinity(neg))
		return nil
	}
	q, ok := exactly(s)
	if !ok {
		return fmt.Errorf("%w: want a number such as 0.1, 1e-7, 0x1.8p3, inf or nan", ErrSyntax)
	}
	x, ok := f.round(q)
	if !ok {
		return fmt.Errorf("%w: want at most %s in magnitude", ErrRange, f.largest())
	}
	f.pack(b, x)
	return nil
}

// round finds the number nearest to q; ok is false when that is too large.
func (f *format) round(q fraction) (x fields, ok bool) {
	x.neg = q.neg
	switch {
	case q.num.Sign() == 0:
		return x, true
	case q.huge:
		return x, false
	}
	// scale: the exponent of two of the last bit that is kept.
	scale := max(q.log2()-f.man, f.minScale())
	num, den := new(big.Int).Set(q.num), new(big.Int).Set(q.den)
	if scale > 0 {
		den.Lsh(den, uint(scale))
	} else {
		num.Lsh(num, uint(-scale))
	}
	quo, rem := num.QuoRem(num, den, new(big.Int))
	if c := rem.Lsh(rem, 1).Cmp(den); c > 0 || c == 0 && quo.Bit(0) == 1 {
		quo.Add(quo, big.NewInt(1))
	}
	if quo.BitLen() > f.man+1 { // rounding carried out of the significand
		quo.Rsh(quo, 1)
		scale++
	}
	x.man = quo.Uint64()
	if x.man >= f.leading() {
		x.exp = scale + f.bias() + f.man
		if !f.explicit {
			x.man -= f.leading()
		}
	}
	special := x.exp >= f.maxExp()
	if f.finite {
		special = x.exp > f.maxExp() || x == f.nan(x.neg)
	}
	return x, !special
}

// largest prints the greatest finite number, with more digits than needed: the
// shortest text may be another number.
func (f *format) largest() string {
	x := fields{exp: f.maxExp() - 1, man: math.MaxUint64 >> (64 - f.stored())}
	if f.finite {
		x = fields{exp: f.maxExp(), man: f.leading() - 2}
	}
	return f.number(x).Text('g', 21)
}

// text prints a number; ok is false for those that only their bits tell apart: NaNs
// with a payload, the x87's invalid operands, nonzero padding.
func (f *format) text(b []byte) (s string, ok bool) {
	x, ok := f.unpack(b)
	if !ok {
		return "", false
	}
	sign := ""
	if x.neg {
		sign = "-"
	}
	switch {
	case x == f.nan(x.neg):
		return sign + "nan", true
	case f.finite: // all else is a number
	case x == f.infinity(x.neg):
		return sign + "inf", true
	case x.exp == f.maxExp():
		return "", false
	case f.explicit && (x.exp > 0) != (x.man >= f.leading()):
		return "", false
	}
	return f.shortest(x), true
}

// number is the exact value of a finite number.
func (f *format) number(x fields) *big.Float {
	man := x.man
	if x.exp > 0 && !f.explicit {
		man |= f.leading()
	}
	v := new(big.Float).SetUint64(man)
	v.SetMantExp(v, max(x.exp, 1)-f.bias()-f.man)
	if x.neg {
		v.Neg(v)
	}
	return v
}

// shortest prints a finite number with as few digits as tell it from its
// neighbours.
func (f *format) shortest(x fields) string {
	v := f.number(x)
	for digits := 0; ; digits++ {
		s := v.Text('e', digits)
		if f.means(s, x) {
			return layout(s)
		}
		// Below a power of two the next number is half as far away as above it, so the
		// decimal above may still be the number though a closer one below is not.
		if s, ok := above(s); ok && f.means(s, x) {
			return layout(s)
		}
	}
}

// means reports whether a decimal is read as the number.
func (f *format) means(s string, x fields) bool {
	q, _ := exactly(s)
	y, ok := f.round(q)
	return ok && y == x
}

// above returns the next decimal of as many digits, away from zero, unless all digits are
// nines: that one has fewer digits.
func above(s string) (string, bool) {
	b := []byte(s)
	for i := bytes.IndexByte(b, 'e') - 1; i >= 0; i-- {
		switch {
		case b[i] >= '0' && b[i] < '9':
			b[i]++
			return string(b), true
		case b[i] == '9':
			b[i] = '0'
		}
	}
	return "", false
}
