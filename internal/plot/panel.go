// SPDX-License-Identifier: Apache-2.0

package plot

import "fmt"

// Point is a pair of values, by the axes.
type Point struct{ X, Y float64 }

// Panel is a diagram of curves, with a legend.
type Panel struct {
	Title, XLabel, YLabel string
	X, Y                  Axis

	all    []series
	limits []limit
}

// series is a set of points with a mark in the legend.
type series struct {
	name, colour string
	points       []Point
	line, dot    bool
	hollow       bool
}

// limit is a value of X with a name.
type limit struct {
	at   float64
	name string
}

// Line adds a curve without marks.
func (p *Panel) Line(name, colour string, points []Point) {
	p.all = append(p.all, series{name, colour, points, true, false, false})
}

// Dots adds marks.
func (p *Panel) Dots(name, colour string, points []Point) {
	p.all = append(p.all, series{name, colour, points, false, true, false})
}

// Rings adds hollow marks.
func (p *Panel) Rings(name, colour string, points []Point) {
	p.all = append(p.all, series{name, colour, points, false, true, true})
}

// Joined adds marks with a curve through them.
func (p *Panel) Joined(name, colour string, points []Point) {
	p.all = append(p.all, series{name, colour, points, true, true, false})
}

// Limit marks a value of X.
func (p *Panel) Limit(at float64, name string) { p.limits = append(p.limits, limit{at, name}) }

// Draw puts the panel onto a sheet: its plot into the box, title and labels around.
func (p *Panel) Draw(s *Sheet, b Box) {
	at := func(q Point) (float64, float64) { return b.X + b.W*p.X.At(q.X), b.Y + b.H*(1-p.Y.At(q.Y)) }
	s.Text(b.X, b.Y-12, 13, Start, Black, p.Title)
	for _, v := range p.X.Ticks() {
		x, _ := at(Point{v, p.Y.Lo})
		s.stroke(x, b.Y, x, b.Y+b.H, gridColour, "")
		s.Text(x, b.Y+b.H+16, 12, Middle, Black, label(v))
	}
	for _, v := range p.Y.Ticks() {
		_, y := at(Point{p.X.Lo, v})
		s.stroke(b.X, y, b.X+b.W, y, gridColour, "")
		s.Text(b.X-6, y+4, 12, End, Black, label(v))
	}
	s.frame(b)
	s.Text(b.X+b.W/2, b.Y+b.H+34, 12, Middle, Black, p.XLabel)
	s.upright(b.X-68, b.Y+b.H/2, 12, Middle, Black, p.YLabel)
	for _, l := range p.limits {
		x, _ := at(Point{l.at, p.Y.Lo})
		s.stroke(x, b.Y, x, b.Y+b.H, Grey, `stroke-dasharray="4 3"`)
		s.upright(x-4, b.Y+b.H-6, 11, Start, Grey, fmt.Sprintf("%s: %.0f", l.name, l.at))
	}
	for i, c := range p.all {
		c.draw(s, at)
		c.legend(s, b.X+12, p.legendTop(b)+float64(i)*17)
	}
}

// legendTop is at the top left, where the curves rise, and below the middle where
// they begin at the top.
func (p *Panel) legendTop(b Box) float64 {
	if p.Y.Log {
		return b.Y + 18
	}
	return b.Y + 18 + b.H*0.45
}

// legend explains the series.
func (c series) legend(s *Sheet, x, y float64) {
	same := func(q Point) (float64, float64) { return q.X, q.Y }
	sample := c
	sample.points, sample.dot = []Point{{x, y - 4}, {x + 22, y - 4}}, false
	sample.draw(s, same)
	sample.points, sample.dot, sample.line = []Point{{x + 11, y - 4}}, c.dot, false
	sample.draw(s, same)
	s.Text(x+30, y, 12, Start, c.colour, c.name)
}

func (c series) draw(s *Sheet, at func(Point) (float64, float64)) {
	if c.line {
		fmt.Fprintf(&s.b, `<polyline fill="none" stroke="%s" stroke-width="1.6" points="`, c.colour)
		for _, q := range c.points {
			x, y := at(q)
			fmt.Fprintf(&s.b, "%.1f,%.1f ", x, y)
		}
		s.b.WriteString(`"/>` + "\n")
	}
	if !c.dot {
		return
	}
	fill := c.colour
	if c.hollow {
		fill = "#ffffff"
	}
	for _, q := range c.points {
		x, y := at(q)
		fmt.Fprintf(&s.b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s" stroke="%s" stroke-width="1.6"/>`+"\n", x, y,
			fill, c.colour)
	}
}
