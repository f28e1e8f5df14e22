// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sort"
	"testing"
)

// reference is an independent description of a small format: the list of its
// finite values, by the formula of the standards.
type reference struct {
	format *smallFormat
	// positive[i] is the value of pattern i; the last is one step beyond the
	// largest finite value, and stands for overflow.
	positive []float64
	overflow uint16 // pattern of a positive overflow
	nan      func(bits uint16) bool
	inf      uint16 // 0 if there is none
	sign     uint16
}

func newReference(f *smallFormat, exp, man, bias, finitePatterns int, overflow, inf uint16, nan func(uint16) bool) *reference {
	r := &reference{format: f, overflow: overflow, inf: inf, nan: nan, sign: 1 << (exp + man)}
	for i := range finitePatterns + 1 {
		e, m := i>>man, float64(i&(1<<man-1))
		if e == 0 {
			r.positive = append(r.positive, math.Ldexp(m, 1-bias-man))
		} else {
			r.positive = append(r.positive, math.Ldexp(m+float64(int(1)<<man), e-bias-man))
		}
	}
	return r
}

var references = map[Datatype]*reference{
	Float8E4M3: newReference(&e4m3, 4, 3, 7, 0x7f, 0x7f, 0, func(b uint16) bool { return b&0x7f == 0x7f }),
	Float8E5M2: newReference(&e5m2, 5, 2, 15, 0x7c, 0x7c, 0x7c, func(b uint16) bool { return b&0x7f > 0x7c }),
	Float16:    newReference(&binary16, 5, 10, 15, 0x7c00, 0x7c00, 0x7c00, func(b uint16) bool { return b&0x7fff > 0x7c00 }),
	BFloat16:   newReference(&bfloat16, 8, 7, 127, 0x7f80, 0x7f80, 0x7f80, func(b uint16) bool { return b&0x7fff > 0x7f80 }),
}

func (r *reference) value(bits uint16) float64 {
	mag, s := bits&(r.sign-1), 1.0
	if bits&r.sign != 0 {
		s = -1
	}
	switch {
	case r.nan(bits):
		return math.NaN()
	case r.inf != 0 && mag == r.inf:
		return math.Inf(int(s))
	}
	return math.Copysign(r.positive[mag], s)
}

// round finds the nearest listed value of x, an exact result with sign neg.
func (r *reference) round(x *big.Float, neg bool) uint16 {
	var sign uint16
	if neg {
		sign = r.sign
	}
	mag := new(big.Float).Abs(x)
	above := func(v float64) int { return mag.Cmp(big.NewFloat(v)) }
	if above(r.positive[len(r.positive)-1]) >= 0 {
		return sign | r.overflow
	}
	hi := uint16(sort.Search(len(r.positive), func(i int) bool { return above(r.positive[i]) <= 0 }))
	if above(r.positive[hi]) == 0 {
		return sign | hi
	}
	mid := (r.positive[hi-1] + r.positive[hi]) / 2
	switch c := above(mid); {
	case c > 0, c == 0 && hi%2 == 0:
		return sign | r.pattern(hi)
	}
	return sign | (hi - 1)
}

func (r *reference) pattern(i uint16) uint16 {
	if int(i) == len(r.positive)-1 {
		return r.overflow
	}
	return i
}

// compute is op on exact values; special cases follow IEEE 754 by float64.
func (r *reference) compute(op Op, a, b uint16) (bits uint16, nan bool) {
	x, y := r.value(a), r.value(b)
	var z float64
	switch op {
	case Sum:
		z = x + y
	case Diff:
		z = x - y
	case Prod:
		z = x * y
	}
	if math.IsNaN(z) {
		return 0, true
	}
	if math.IsInf(z, 0) { // operands are infinite: no finite ones overflow float64
		return r.inf | map[bool]uint16{true: r.sign}[z < 0], false
	}
	exact, bx, by := new(big.Float).SetPrec(600), big.NewFloat(x), big.NewFloat(y)
	switch op {
	case Sum:
		exact.Add(bx, by)
	case Diff:
		exact.Sub(bx, by)
	case Prod:
		exact.Mul(bx, by)
	}
	bits = r.round(exact, math.Signbit(z))
	return bits, r.nan(bits)
}

// check runs the algebra of dt against the reference for one pair.
func (r *reference) check(t *testing.T, dt Datatype, a *algebra[uint16], x, y uint16) {
	t.Helper()
	for op, f := range map[Op]func(x, y uint16) uint16{Sum: a.add, Diff: a.sub, Prod: a.mul} {
		want, nan := r.compute(op, x, y)
		if got := f(x, y); got != want && !(nan && r.nan(got)) {
			t.Errorf("%v: %#x %v %#x = %#x; want %#x (NaN %v)", dt, x, op, y, got, want, nan)
		}
	}
	vx, vy := r.value(x), r.value(y)
	if a.less(x, y) != (vx < vy) || a.equal(x, y) != (vx == vy) || a.truth(x) != (vx != 0) {
		t.Errorf("%v: comparison of %#x (%v) and %#x (%v) is wrong", dt, x, vx, y, vy)
	}
}

func TestFloat8Exhaustively(t *testing.T) {
	if testing.Short() {
		t.Skip("a long computation: run without -short")
	}
	for _, dt := range []Datatype{Float8E4M3, Float8E5M2} {
		r := references[dt]
		a := smallAlgebra[uint16](r.format)
		for x := range uint16(256) {
			for y := range uint16(256) {
				r.check(t, dt, &a, x, y)
			}
		}
	}
}

// TestFloat8Kernels runs the kernels themselves on all pairs at once, against
// the algebra that TestFloat8Exhaustively has checked.
func TestFloat8Kernels(t *testing.T) {
	for _, dt := range []Datatype{Float8E4M3, Float8E5M2} {
		a := smallAlgebra[uint8](references[dt].format)
		target, operand, _, _ := buffers(dt, 1<<16)
		for op, f := range map[Op]func(x, y uint8) uint8{Sum: a.add, Diff: a.sub, Prod: a.mul} {
			for i := range target {
				target[i], operand[i] = byte(i), byte(i>>8)
			}
			KernelOf(Base, op, dt)(target, operand, nil, nil)
			for i := range target {
				if want := f(byte(i), byte(i>>8)); target[i] != want {
					t.Fatalf("%v: %#x %v %#x = %#x; want %#x", dt, i&255, op, i>>8, target[i], want)
				}
			}
		}
	}
}

func TestSmallFloatRoundTrip(t *testing.T) {
	for dt, r := range references {
		for bits := range r.sign * 2 {
			bits := uint16(bits)
			v := r.format.decode(bits)
			if want := r.value(bits); v != want && !(v != v && want != want) || math.Signbit(v) != math.Signbit(r.value(bits)) && v == v {
				t.Fatalf("%v: decode(%#x) = %v; want %v", dt, bits, v, want)
			}
			if got := r.format.encode(v); got != bits && !(r.nan(got) && r.nan(bits)) {
				t.Fatalf("%v: encode(decode(%#x)) = %#x", dt, bits, got)
			}
		}
	}
	// Properties of float64 that no sum or product can show.
	for _, x := range []float64{math.SmallestNonzeroFloat64, 0x1p-1022, -0x1p-200, math.MaxFloat64, math.Inf(-1)} {
		for dt, r := range references {
			got := r.format.encode(x)
			want := map[bool]uint16{true: r.sign}[x < 0]
			if math.Abs(x) > 1 {
				want |= r.overflow
			}
			if got != want {
				t.Errorf("%v: encode(%g) = %#x; want %#x", dt, x, got, want)
			}
		}
	}
}

// TestHalfAgainstExact samples pairs, half of them with close exponents, where
// rounding is hardest.
func TestHalfAgainstExact(t *testing.T) {
	rng, rounds := rand.New(rand.NewPCG(1, 2)), 40000
	if testing.Short() {
		rounds /= 10
	}
	for _, dt := range []Datatype{Float16, BFloat16} {
		r := references[dt]
		a := smallAlgebra[uint16](r.format)
		for i := range rounds {
			x, y := uint16(rng.Uint32()), uint16(rng.Uint32())
			switch i % 4 {
			case 1:
				y = x ^ y&(r.sign|1<<(r.format.manBits+2)-1)
			case 2: // products near the underflow threshold
				y = y&^(r.sign-1) | uint16(r.format.bias()<<r.format.manBits)/2 + y%(1<<(r.format.manBits+2))
				x = y ^ x&(1<<r.format.manBits-1)
			}
			r.check(t, dt, &a, x, y)
		}
	}
}
