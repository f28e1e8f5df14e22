// SPDX-License-Identifier: Apache-2.0

package value

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
)

// fraction is a number exactly as it was written.
type fraction struct {
	neg      bool
	num, den *big.Int // num >= 0, den > 0
	huge     bool     // beyond every format; num is anything but 0
}

// The texts of numbers: a sign, digits with a point somewhere, and an exponent, of ten
// after decimal digits and of two after hexadecimal ones.
var (
	decimalText = regexp.MustCompile(`^([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?$`)
	hexText     = regexp.MustCompile(`^([+-]?)0[xX]([0-9a-fA-F]*)(?:\.([0-9a-fA-F]*))?(?:[pP]([+-]?[0-9]+))?$`)
	wordText    = regexp.MustCompile(`^[+-]?(?i:inf|infinity|nan)$`)
)

// farAway is an exponent of two far beyond every format's (long double: 16384).
const farAway = 20000

// isNumber reports whether a text is a number in any of the notations.
func isNumber(s string) bool {
	_, ok := exactly(s)
	return ok || wordText.MatchString(s)
}

// exactly reads a number without rounding. One that is out of every format's
// range is replaced by a huge one or by zero before it costs any memory.
func exactly(s string) (q fraction, ok bool) {
	base, perDigit := 10, 10.0/3 // bits for each digit, roughly
	m := decimalText.FindStringSubmatch(s)
	if h := hexText.FindStringSubmatch(s); h != nil {
		m, base, perDigit = h, 16, 4
	}
	if m == nil || m[2]+m[3] == "" {
		return q, false
	}
	q = fraction{neg: m[1] == "-", num: new(big.Int), den: big.NewInt(1)}
	digits := strings.TrimLeft(m[2]+m[3], "0")
	if digits == "" {
		return q, true
	}
	q.num.SetString(digits, base)
	// Atoi clamps an exponent that overflows to the ends of int, which are far away in
	// any case.
	exp, _ := strconv.Atoi(m[4])
	exp = max(min(exp, 1<<30), -1<<30)
	if base == 16 {
		exp -= 4 * len(m[3])
	} else {
		exp -= len(m[3])
	}
	top := float64(exp) + perDigit*float64(len(digits)) // exponent of two of the leading digit
	if base == 10 {
		top = perDigit * float64(exp+len(digits))
	}
	switch {
	case top > farAway:
		q.huge = true
	case top < -farAway:
		q.num.SetInt64(0)
	case base == 16 && exp >= 0:
		q.num.Lsh(q.num, uint(exp))
	case base == 16:
		q.den.Lsh(q.den, uint(-exp))
	case exp >= 0:
		q.num.Mul(q.num, power10(exp))
	default:
		q.den = power10(-exp)
	}
	return q, true
}

func power10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// log2 returns the exponent of two of the leading bit: floor(log2(num/den)).
func (q fraction) log2() int {
	e := q.num.BitLen() - q.den.BitLen()
	a, b := q.num, q.den
	if e >= 0 {
		b = new(big.Int).Lsh(b, uint(e))
	} else {
		a = new(big.Int).Lsh(a, uint(-e))
	}
	if a.Cmp(b) < 0 {
		e--
	}
	return e
}

// layout turns d.ddde±xx into the usual notation: no exponent if a few zeros replace
// it.
func layout(s string) string {
	mantissa, e, _ := strings.Cut(s, "e")
	exp, _ := strconv.Atoi(e)
	sign, digits := "", strings.Replace(mantissa, ".", "", 1)
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	switch {
	case exp < -5 || exp > 20:
		return mantissa + "e" + strconv.Itoa(exp)
	case exp < 0:
		return sign + "0." + strings.Repeat("0", -exp-1) + digits
	case exp >= len(digits)-1:
		return sign + digits + strings.Repeat("0", exp-len(digits)+1)
	}
	return sign + digits[:exp+1] + "." + digits[exp+1:]
}
