// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// The smallest step of a long double is 2^x87MinStep.
const x87MinStep = 1 - x87Bias - 63

// bigOf is the exact value of a finite long double.
func bigOf(a word128) *big.Float {
	f := new(big.Float).SetPrec(64).SetUint64(a.lo)
	f.SetMantExp(f, x87Exp(a)-x87Bias-63)
	if a.hi&x87Sign != 0 {
		f.Neg(f)
	}
	return f
}

// x87Of rounds an exact value to a long double with integers only: the reference
// for x87Round. Zero results have the sign neg.
func x87Of(x *big.Float, neg bool) word128 {
	r := word128{}
	if neg {
		r.hi = x87Sign
	}
	if x.Sign() == 0 {
		return r
	}
	step := max(x.MantExp(nil)-64, x87MinStep)
	scaled := new(big.Float).SetMantExp(new(big.Float).Abs(x), -step)
	whole, _ := scaled.Int(nil)
	rest := new(big.Float).Sub(scaled, new(big.Float).SetPrec(scaled.Prec()).SetInt(whole))
	if c := rest.Cmp(big.NewFloat(0.5)); c > 0 || c == 0 && whole.Bit(0) == 1 {
		whole.Add(whole, big.NewInt(1))
	}
	if whole.BitLen() == 65 {
		whole.Rsh(whole, 1)
		step++
	}
	exp := step + 63 + x87Bias
	r.lo = whole.Uint64()
	switch {
	case r.lo>>63 == 0:
		exp = 0
	case exp >= x87MaxExp:
		return word128{x87Inf.lo, x87Inf.hi | r.hi}
	}
	r.hi |= uint64(exp)
	return r
}

// randomX87 makes finite numbers; near is an exponent to stay close to, and bit
// patterns of few ones and zeros are frequent, for ties and cancellations.
func randomX87(rng *rand.Rand, near int) word128 {
	exp := min(max(near+rng.IntN(140)-70, 0), x87MaxExp-1)
	lo := rng.Uint64()
	switch rng.IntN(4) {
	case 0:
		first, second := rng.IntN(64), rng.IntN(64)
		lo = 1<<first | 1<<second
	case 1:
		lo = -(uint64(1) << rng.IntN(64)) ^ 1<<rng.IntN(64)
	}
	if exp > 0 {
		lo |= x87Integer
	} // with exponent 0 both subnormals and pseudo-denormals
	return word128{lo, uint64(exp) | rng.Uint64()<<15} // any sign, any padding
}

func TestX87AgainstBig(t *testing.T) {
	rng, rounds := rand.New(rand.NewPCG(3, 4)), 60000
	if testing.Short() {
		rounds /= 10
	}
	for i := range rounds {
		near := []int{0, 60, x87Bias, x87MaxExp - 1, rng.IntN(x87MaxExp)}[i%5]
		a, b := randomX87(rng, near), randomX87(rng, near)
		x, y := bigOf(a), bigOf(b)
		sum := new(big.Float).SetPrec(400).Add(x, y)
		negSum := a.hi&b.hi&x87Sign != 0
		if sum.Sign() != 0 {
			negSum = sum.Signbit()
		}
		same(t, "add", a, b, x87Add(a, b), x87Of(sum, negSum))
		diff := new(big.Float).SetPrec(400).Sub(x, y)
		negDiff := a.hi&^b.hi&x87Sign != 0
		if diff.Sign() != 0 {
			negDiff = diff.Signbit()
		}
		same(t, "sub", a, b, longDoubleAlgebra.sub(a, b), x87Of(diff, negDiff))
		if x87Less(a, b) != (x.Cmp(y) < 0) || x87Equal(a, b) != (x.Cmp(y) == 0) {
			t.Errorf("comparison of %x and %x is wrong", a, b)
		}
		// A factor that brings the product near underflow, overflow or one.
		other := []int{x87Bias - near, x87Bias*2 - near, 0 + x87Bias - 32 - near/2}[i%3]
		c := randomX87(rng, min(max(other, 0), x87MaxExp-1))
		same(t, "mul", a, c, x87Mul(a, c), x87Of(new(big.Float).SetPrec(200).Mul(x, bigOf(c)), (a.hi^c.hi)&x87Sign != 0))
	}
	// Far apart: the smaller one only breaks ties.
	one, tiny := longDoubleAlgebra.one, word128{lo: 1}
	same(t, "add", one, tiny, x87Add(one, tiny), one)
	same(t, "sub", one, tiny, longDoubleAlgebra.sub(one, tiny), one)
	tie := word128{x87Integer, x87Bias - 64} // half a step of 1
	same(t, "add", one, tie, x87Add(one, tie), one)
	above := word128{x87Integer | 1, x87Bias - 64}
	same(t, "add", one, above, x87Add(one, above), word128{x87Integer | 1, x87Bias})
}

func same(t *testing.T, op string, a, b, got, want word128) {
	t.Helper()
	if got != want {
		t.Errorf("%s(%x, %x) = %x; want %x", op, a, b, got, want)
	}
}

// special are the encodings whose treatment is by definition, with what they
// mean as a float64.
var special = []struct {
	name string
	bits word128
	val  float64
}{
	{"+0", word128{}, 0},
	{"-0", word128{0, x87Sign}, math.Copysign(0, -1)},
	{"1", word128{x87Integer, x87Bias}, 1},
	{"-2, padded", word128{x87Integer, x87Sign | (x87Bias + 1) | 0xabcd<<16}, -2},
	{"+inf", x87Inf, math.Inf(1)},
	{"-inf, padded", word128{x87Integer, 0xffff | 1<<63}, math.Inf(-1)},
	{"quiet NaN", x87NaN, math.NaN()},
	{"signalling NaN", word128{x87Integer | 1, x87MaxExp}, math.NaN()},
	{"pseudo-NaN", word128{1, x87MaxExp}, math.NaN()},
	{"pseudo-infinity", word128{0, x87MaxExp}, math.NaN()},
	{"unnormal", word128{1 << 62, x87Bias}, math.NaN()},
	{"unnormal zero", word128{0, x87Bias}, math.NaN()},
}

// TestX87Specials lets float64 say what infinities, zeros and NaNs yield.
func TestX87Specials(t *testing.T) {
	toFloat := func(a word128) float64 {
		if x87IsNaN(a) {
			return math.NaN()
		}
		if x87IsInf(a) {
			return math.Inf(1 - 2*int(a.hi>>15&1))
		}
		f, _ := bigOf(a).Float64()
		return f
	}
	a := longDoubleAlgebra
	for _, x := range special {
		if a.truth(x.bits) != (x.val != 0) {
			t.Errorf("truth of %s is wrong", x.name)
		}
		for _, y := range special {
			for _, c := range []struct {
				op   string
				got  word128
				want float64
			}{
				{"+", a.add(x.bits, y.bits), x.val + y.val},
				{"-", a.sub(x.bits, y.bits), x.val - y.val},
				{"*", a.mul(x.bits, y.bits), x.val * y.val},
			} {
				got := toFloat(c.got)
				if math.Float64bits(got) != math.Float64bits(c.want) && !(got != got && c.want != c.want) {
					t.Errorf("%s %s %s = %v (%x); want %v", x.name, c.op, y.name, got, c.got, c.want)
				}
				if c.got.hi>>16 != 0 {
					t.Errorf("%s %s %s: padding %x; want zeros", x.name, c.op, y.name, c.got.hi>>16)
				}
			}
			if a.less(x.bits, y.bits) != (x.val < y.val) || a.equal(x.bits, y.bits) != (x.val == y.val) {
				t.Errorf("comparison of %s and %s is wrong", x.name, y.name)
			}
		}
	}
}

func TestShiftsKeepTheirPromise(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	mask := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 128), big.NewInt(1))
	for range 5000 {
		a := word128{rng.Uint64(), rng.Uint64() >> rng.IntN(64)}
		n := rng.IntN(128)
		left := new(big.Int).And(new(big.Int).Lsh(bigUint(a), uint(n)), mask)
		if got := shiftLeft(a, n); bigUint(got).Cmp(left) != 0 {
			t.Fatalf("%x << %d = %x", a, n, got)
		}
		n = rng.IntN(140)
		right := new(big.Int).Rsh(bigUint(a), uint(n))
		if new(big.Int).Lsh(right, uint(n)).Cmp(bigUint(a)) != 0 {
			right.SetBit(right, 0, 1)
		}
		if got := shiftRightJam(a, n); bigUint(got).Cmp(right) != 0 {
			t.Fatalf("%x >> %d = %x; want %x", a, n, got, right)
		}
	}
}
