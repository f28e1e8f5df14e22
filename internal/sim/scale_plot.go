// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"
	"html"
	"math"
)

// plot draws the report as SVG: latency under two loads, who gets what, memory.
func (r *scaleReport) plot() []byte {
	s := &r.Setup
	sheet := newSheet(1120, 860, "Scaling: many nodes, one target; points are simulated with real engines, lines are the model")
	model := func(turn float64) (pts []xy) {
		for _, n := range nodeRange() {
			pts = append(pts, xy{float64(n), s.model(n, turn)})
		}
		return pts
	}
	p99 := func(points []incastPoint) (pts []xy) {
		for _, p := range points {
			pts = append(pts, xy{float64(p.Nodes), p.P99})
		}
		return pts
	}
	pool := &panel{title: "One fetch-add in flight at each node: p99", yLabel: "µs", x: axis{10, 10000, true}, y: axis{10, 1000000, true}}
	pool.line("model: a turn of everybody, or the cables", blue, model(float64(s.EchoCost)))
	pool.dots("simulated", blue, p99(r.Single))
	pool.rings("simulated, more sessions", orange, p99(r.Raised))
	pool.limit(s.RXBuffers, "receive buffers")
	pool.limit(s.Accepted, "sessions")

	bulk := &panel{title: "Full frames, windows open: round trip of a frame, p99", yLabel: "µs", x: axis{10, 10000, true}, y: axis{10, 1000000, true}}
	bulk.line("model: a frame of everybody, or the cables", green, model(s.FrameTime))
	bulk.dots("simulated", green, p99(r.Bulk))
	bulk.limit(int(float64(s.SwitchQueue)/s.FrameTime), "switch queue")

	share := &panel{title: "Who is served", yLabel: "share of nodes; fairness", x: axis{10, 10000, true}, y: axis{0, 1, false}}
	share.joined("one in flight: nodes served", blue, served(r.Single))
	share.joined("one in flight, more sessions: nodes served", orange, served(r.Raised))
	share.joined("full frames: nodes served", green, served(r.Bulk))
	share.rings("full frames: fairness", red, fairness(r.Bulk))
	share.limit(s.RXBuffers, "receive buffers")
	share.limit(s.Accepted, "sessions")

	sheet.draw(0, 0, pool)
	sheet.draw(1, 0, bulk)
	sheet.draw(0, 1, share)
	sheet.draw(1, 1, r.memoryPanel())
	return sheet.end()
}

// nodeRange is 10 to 10,000 in equal steps of the logarithm.
func nodeRange() (nodes []int) {
	const perDecade = 40
	for i := range 3*perDecade + 1 {
		nodes = append(nodes, int(math.Round(math.Pow(10, 1+float64(i)/perDecade))))
	}
	return nodes
}

func served(points []incastPoint) (pts []xy) {
	for _, p := range points {
		pts = append(pts, xy{float64(p.Nodes), float64(p.Nodes-p.Refused-p.Starved) / float64(p.Nodes)})
	}
	return pts
}

func fairness(points []incastPoint) (pts []xy) {
	for _, p := range points {
		pts = append(pts, xy{float64(p.Nodes), p.Fairness})
	}
	return pts
}

// memoryPanel shows a node's memory when everybody has a session to everybody.
func (r *scaleReport) memoryPanel() *panel {
	p := &panel{title: "Everybody to everybody: memory of a node", yLabel: "MiB", x: axis{10, 10000, true}, y: axis{0.1, 1000, true}}
	var sessions, idle, most, measured []xy
	for _, n := range nodeRange() {
		m, x := r.memory(n), float64(n)
		sessions = append(sessions, xy{x, mib(m.Modelled)})
		idle = append(idle, xy{x, mib(m.Idle)})
		most = append(most, xy{x, mib(m.Most)})
	}
	for _, m := range r.Memory {
		if m.Measured > 0 {
			measured = append(measured, xy{float64(m.Nodes), mib(m.Measured)})
		}
	}
	p.line("every buffer once in use", red, most)
	p.line("idle: packets, domain, sessions", blue, idle)
	p.line("sessions alone", green, sessions)
	p.dots("sessions alone, measured", green, measured)
	p.limit(r.Setup.Sessions/2+1, "one queue")
	return p
}

// The colours, apart for colour-blind eyes too.
const (
	blue   = "#0063a6"
	orange = "#d95f02"
	green  = "#007a5a"
	red    = "#b3002d"
	grey   = "#777777"
)

type xy struct{ x, y float64 }

// axis maps values from lo to hi to 0 to 1; values outside stay at the border.
type axis struct {
	lo, hi float64
	log    bool
}

func (a axis) at(v float64) float64 {
	lo, hi := a.lo, a.hi
	if a.log {
		lo, hi, v = math.Log10(lo), math.Log10(hi), math.Log10(max(v, a.lo/10))
	}
	return min(max((v-lo)/(hi-lo), 0), 1)
}

// ticks are the values to label: decades, or fifths.
func (a axis) ticks() (t []float64) {
	if !a.log {
		for i := range 6 {
			t = append(t, a.lo+(a.hi-a.lo)*float64(i)/5)
		}
		return t
	}
	for v := a.lo; v <= a.hi*1.001; v *= 10 {
		t = append(t, v)
	}
	return t
}

// series is a set of points with a mark in the legend.
type series struct {
	name, colour string
	pts          []xy
	line, dot    bool
	hollow       bool
}

// panel is one diagram.
type panel struct {
	title, yLabel string
	x, y          axis
	all           []series
	limits        []scaleLimit
}

func (p *panel) line(name, colour string, pts []xy) {
	p.all = append(p.all, series{name, colour, pts, true, false, false})
}
func (p *panel) dots(name, colour string, pts []xy) {
	p.all = append(p.all, series{name, colour, pts, false, true, false})
}
func (p *panel) rings(name, colour string, pts []xy) {
	p.all = append(p.all, series{name, colour, pts, false, true, true})
}
func (p *panel) joined(name, colour string, pts []xy) {
	p.all = append(p.all, series{name, colour, pts, true, true, false})
}

// limit marks a number of nodes.
func (p *panel) limit(nodes int, name string) {
	p.limits = append(p.limits, scaleLimit{What: name, Nodes: nodes})
}

// sheet is the page; panels stand in two columns.
type sheet struct {
	b    bytes.Buffer
	w, h int
}

func newSheet(w, h int, title string) *sheet {
	s := &sheet{w: w, h: h}
	fmt.Fprintf(&s.b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="12">`+"\n", w, h, w, h)
	fmt.Fprintf(&s.b, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", w, h)
	s.text(float64(w)/2, 24, 15, "middle", "#000000", title)
	return s
}

func (s *sheet) end() []byte {
	s.b.WriteString("</svg>\n")
	return s.b.Bytes()
}

func (s *sheet) text(x, y float64, size int, anchor, colour, text string) {
	fmt.Fprintf(&s.b, `<text x="%.1f" y="%.1f" font-size="%d" text-anchor="%s" fill="%s">%s</text>`+"\n", x, y, size, anchor, colour, html.EscapeString(text))
}

func (s *sheet) stroke(x1, y1, x2, y2 float64, colour, more string) {
	fmt.Fprintf(&s.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" %s/>`+"\n", x1, y1, x2, y2, colour, more)
}

// Room around a panel's plot, in pixels.
const (
	left, right, top, bottom = 84, 30, 34, 44
	header                   = 40
)

// draw puts a panel into a column and row.
func (s *sheet) draw(col, row int, p *panel) {
	w, h := float64(s.w)/2, float64(s.h-header)/2
	x0, y0 := float64(col)*w+left, header+float64(row)*h+top
	pw, ph := w-left-right, h-top-bottom
	at := func(q xy) (float64, float64) { return x0 + pw*p.x.at(q.x), y0 + ph*(1-p.y.at(q.y)) }

	s.text(x0, y0-12, 13, "start", "#000000", p.title)
	for _, v := range p.x.ticks() {
		x, _ := at(xy{v, p.y.lo})
		s.stroke(x, y0, x, y0+ph, "#e4e4e4", "")
		s.text(x, y0+ph+16, 12, "middle", "#000000", number10(v))
	}
	for _, v := range p.y.ticks() {
		_, y := at(xy{p.x.lo, v})
		s.stroke(x0, y, x0+pw, y, "#e4e4e4", "")
		s.text(x0-6, y+4, 12, "end", "#000000", number10(v))
	}
	fmt.Fprintf(&s.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="none" stroke="#000000"/>`+"\n", x0, y0, pw, ph)
	s.text(x0+pw/2, y0+ph+34, 12, "middle", "#000000", "nodes")
	fmt.Fprintf(&s.b, `<text transform="translate(%.1f %.1f) rotate(-90)" text-anchor="middle">%s</text>`+"\n", x0-68, y0+ph/2, html.EscapeString(p.yLabel))
	for _, l := range p.limits {
		x, _ := at(xy{float64(l.Nodes), p.y.lo})
		s.stroke(x, y0, x, y0+ph, grey, `stroke-dasharray="4 3"`)
		fmt.Fprintf(&s.b, `<text transform="translate(%.1f %.1f) rotate(-90)" fill="%s" font-size="11">%s: %d</text>`+"\n",
			x-4, y0+ph-6, grey, html.EscapeString(l.What), l.Nodes)
	}
	for i, c := range p.all {
		s.series(c, at)
		s.legend(c, x0+12, y0+18+float64(i)*17, p, ph)
	}
}

// legend explains one series; where the curves rise it stands at the top left, and
// below the middle where they begin at the top.
func (s *sheet) legend(c series, x, y float64, p *panel, ph float64) {
	if !p.y.log {
		y += ph * 0.45
	}
	sample := series{c.name, c.colour, []xy{{x, y - 4}, {x + 22, y - 4}}, c.line, false, c.hollow}
	same := func(q xy) (float64, float64) { return q.x, q.y }
	s.series(sample, same)
	if c.dot {
		s.series(series{c.name, c.colour, []xy{{x + 11, y - 4}}, false, true, c.hollow}, same)
	}
	s.text(x+30, y, 12, "start", c.colour, c.name)
}

func (s *sheet) series(c series, at func(xy) (float64, float64)) {
	if c.line {
		fmt.Fprintf(&s.b, `<polyline fill="none" stroke="%s" stroke-width="1.6" points="`, c.colour)
		for _, q := range c.pts {
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
	for _, q := range c.pts {
		x, y := at(q)
		fmt.Fprintf(&s.b, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s" stroke="%s" stroke-width="1.6"/>`+"\n", x, y, fill, c.colour)
	}
}

// number10 prints a tick.
func number10(v float64) string {
	if v >= 1e6 {
		return fmt.Sprintf("%.0f,000,000", v/1e6)
	}
	if v >= 1000 {
		return fmt.Sprintf("%.0f,000", v/1000)
	}
	return fmt.Sprintf("%.4g", v)
}
