// SPDX-License-Identifier: Apache-2.0

package plot

import (
	"fmt"
	"math"
	"strconv"
)

// Axis maps values from Lo to Hi to the range from 0 to 1; values outside are
// moved to the border.
type Axis struct {
	Lo, Hi float64
	Log    bool
}

// Decades is a logarithmic axis of whole decades that holds all values above 0.
func Decades(values ...float64) Axis {
	a := Axis{Lo: math.Inf(1), Hi: math.Inf(-1), Log: true}
	for _, v := range values {
		if v > 0 {
			a.Lo, a.Hi = min(a.Lo, v), max(a.Hi, v)
		}
	}
	if a.Lo > a.Hi { // there are no values
		a.Lo, a.Hi = 1, 10
	}
	// A value that exceeds a decade only by rounding begins no new one.
	a.Lo = math.Pow(10, math.Floor(math.Log10(a.Lo*1.01)))
	a.Hi = math.Pow(10, math.Ceil(math.Log10(a.Hi/1.01)))
	if a.Hi <= a.Lo {
		a.Hi = 10 * a.Lo
	}
	return a
}

// At returns the place of a value, from 0 to 1.
func (a Axis) At(v float64) float64 {
	lo, hi := a.Lo, a.Hi
	if a.Log {
		lo, hi, v = math.Log10(lo), math.Log10(hi), math.Log10(max(v, a.Lo/10))
	}
	return min(max((v-lo)/(hi-lo), 0), 1)
}

// Ticks returns the values to label: decades, or fifths.
func (a Axis) Ticks() (t []float64) {
	if !a.Log {
		for i := range 6 {
			t = append(t, a.Lo+(a.Hi-a.Lo)*float64(i)/5)
		}
		return t
	}
	for v := a.Lo; v <= a.Hi*1.001; v *= 10 {
		t = append(t, v)
	}
	return t
}

// label prints a tick, without an exponent.
func label(v float64) string {
	if v >= 1e6 {
		return fmt.Sprintf("%.0f,000,000", v/1e6)
	}
	if v >= 1000 {
		return fmt.Sprintf("%.0f,000", v/1000)
	}
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}
