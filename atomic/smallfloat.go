// SPDX-License-Identifier: Apache-2.0

package atomic

import "math"

// smallFormat describes a binary floating-point format of at most 16 bits. Its
// sign is above the exponent, which is above the mantissa.
type smallFormat struct {
	expBits, manBits int
	// finite formats have no infinities, and of the top exponent only the
	// all-ones mantissa is NaN; the other patterns are ordinary numbers.
	finite bool
}

var (
	binary16 = smallFormat{expBits: 5, manBits: 10}
	bfloat16 = smallFormat{expBits: 8, manBits: 7}
	e4m3     = smallFormat{expBits: 4, manBits: 3, finite: true}
	e5m2     = smallFormat{expBits: 5, manBits: 2}
)

func (f *smallFormat) bias() int        { return 1<<(f.expBits-1) - 1 }
func (f *smallFormat) maxExp() int      { return 1<<f.expBits - 1 }
func (f *smallFormat) signBit() uint16  { return 1 << (f.expBits + f.manBits) }
func (f *smallFormat) nan() uint16      { return f.signBit() - 1 }
func (f *smallFormat) infinity() uint16 { return uint16(f.maxExp() << f.manBits) }

// decode returns the value of v; it is always exact.
func (f *smallFormat) decode(v uint16) float64 {
	sign := uint64(v&f.signBit()) << (63 - f.expBits - f.manBits)
	mag := v & (f.signBit() - 1)
	exp := int(mag) >> f.manBits
	man := uint64(mag) & (1<<f.manBits - 1)
	switch {
	case f.finite && mag == f.nan():
		return math.NaN()
	case !f.finite && exp == f.maxExp():
		if man != 0 {
			return math.NaN()
		}
		return math.Float64frombits(sign | 0x7ff<<52)
	case exp == 0:
		// Subnormal: an integer multiple of the smallest step.
		step := math.Float64frombits(uint64(1023+1-f.bias()-f.manBits) << 52)
		return math.Float64frombits(sign | math.Float64bits(float64(man)*step))
	}
	return math.Float64frombits(sign | uint64(exp-f.bias()+1023)<<52 | man<<(52-f.manBits))
}

// encode rounds x to nearest, ties to even. Rounding happens on the integer
// "exponent and mantissa", so that a carry moves into the exponent, out of the
// subnormals, or into the pattern of infinity, by itself.
func (f *smallFormat) encode(x float64) uint16 {
	bits := math.Float64bits(x)
	sign := uint16(bits>>63) << (f.expBits + f.manBits)
	if x != x {
		return sign | f.nan()
	}
	exp := int(bits>>52&0x7ff) - 1023 + f.bias()
	man := bits & (1<<52 - 1)
	drop := 52 - f.manBits // low bits to round away
	if exp >= 1 {
		man |= uint64(exp) << 52 // also when too large: 12 bits hold any exponent here
	} else {
		man |= 1 << 52 // hidden bit; a float64 subnormal is far below every half step
		drop += 1 - exp
	}
	if drop > 54 {
		return sign
	}
	q := man >> drop
	rest, half := man&(1<<drop-1), uint64(1)<<(drop-1)
	if rest > half || rest == half && q&1 == 1 {
		q++
	}
	if q >= uint64(f.overflow()) {
		return sign | f.overflow()
	}
	return sign | uint16(q)
}

// overflow is the pattern of a value that is too large: NaN where there is no
// infinity.
func (f *smallFormat) overflow() uint16 {
	if f.finite {
		return f.nan()
	}
	return f.infinity()
}

// smallAlgebra computes in float64. There, products of all four formats and sums
// of all but bfloat16 are exact; a bfloat16 sum is rounded twice, harmlessly,
// since 53 >= 2*8+2 (Figueroa, "When is double rounding innocuous?", 1995).
func smallAlgebra[N uint8 | uint16](f *smallFormat) algebra[N] {
	val := func(n N) float64 { return f.decode(uint16(n)) }
	enc := func(x float64) N { return N(f.encode(x)) }
	return algebra[N]{
		add:   func(a, b N) N { return enc(val(a) + val(b)) },
		sub:   func(a, b N) N { return enc(val(a) - val(b)) },
		mul:   func(a, b N) N { return enc(val(a) * val(b)) },
		less:  func(a, b N) bool { return val(a) < val(b) },
		equal: func(a, b N) bool { return val(a) == val(b) },
		truth: func(a N) bool { return val(a) != 0 },
		one:   N(f.encode(1)),
	}
}
