// SPDX-License-Identifier: Apache-2.0

package plot

// Bar is a value with a name.
type Bar struct {
	Name, Colour string
	Value        float64
	Text         string // the value, as it is to be read
}

// Bars draws bars below each other, as long as the logarithms of their values: their
// names end at the left side of the box.
func (s *Sheet) Bars(b Box, title string, bars []Bar) {
	if len(bars) == 0 {
		return
	}
	var values []float64
	for _, r := range bars {
		values = append(values, r.Value)
	}
	a := Decades(values...)
	s.Text(b.X, b.Y-14, 13, Middle, Black, title)
	step := b.H / float64(len(bars))
	for i, r := range bars {
		top, length := b.Y+float64(i)*step, b.W*a.At(r.Value)
		s.Text(b.X-8, top+step*0.7, 11, End, Black, r.Name)
		s.bar(b.X, top+step*0.12, length, step*0.76, r.Colour)
		s.Text(b.X+length+5, top+step*0.7, 11, Start, Black, r.Text)
	}
	s.stroke(b.X, b.Y, b.X, b.Y+b.H, Black, "")
}
