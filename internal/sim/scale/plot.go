// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"math"

	"github.com/xdpfab/xdpfab/internal/plot"
)

// Plot draws the report as SVG: latency under two loads, shares of the
// initiators, memory.
func (r *Report) Plot() []byte {
	s := &r.Setup
	sheet := plot.NewSheet(width, height)
	sheet.Text(width/2, 24, 15, plot.Middle, plot.Black,
		"Scaling: many nodes, one target; points are simulated with real engines, lines are the model")
	model := func(turn float64) (pts []plot.Point) {
		for _, n := range nodeRange() {
			pts = append(pts, plot.Point{X: float64(n), Y: s.Model(n, turn)})
		}
		return pts
	}
	p99 := func(points []Incast) (pts []plot.Point) {
		for _, p := range points {
			pts = append(pts, plot.Point{X: float64(p.Nodes), Y: p.P99})
		}
		return pts
	}
	pool := newPanel("One fetch-add in flight at each node: p99", "µs", plot.Axis{Lo: 10, Hi: 1000000, Log: true})
	pool.Line("model: a turn of every node, or the cables", plot.Blue, model(float64(s.EchoCost)))
	pool.Dots("simulated", plot.Blue, p99(r.Single))
	pool.Rings("simulated, more sessions", plot.Orange, p99(r.Raised))
	pool.Limit(float64(s.RXBuffers), "receive buffers")
	pool.Limit(float64(s.Accepted), "sessions")

	bulk := newPanel("Full frames, windows open: round trip of a frame, p99", "µs",
		plot.Axis{Lo: 10, Hi: 1000000, Log: true})
	bulk.Line("model: a frame of every node, or the cables", plot.Green, model(s.FrameTime))
	bulk.Dots("simulated", plot.Green, p99(r.Bulk))
	bulk.Limit(math.Floor(float64(s.SwitchQueue)/s.FrameTime), "switch queue")

	share := newPanel("Who is served", "share of nodes; fairness", plot.Axis{Lo: 0, Hi: 1})
	share.Joined("one in flight: nodes served", plot.Blue, served(r.Single))
	share.Joined("one in flight, more sessions: nodes served", plot.Orange, served(r.Raised))
	share.Joined("full frames: nodes served", plot.Green, served(r.Bulk))
	share.Rings("full frames: fairness", plot.Red, fairness(r.Bulk))
	share.Limit(float64(s.RXBuffers), "receive buffers")
	share.Limit(float64(s.Accepted), "sessions")

	for i, p := range []*plot.Panel{pool, bulk, share, r.memoryPanel()} {
		p.Draw(sheet, cell(i%2, i/2))
	}
	return sheet.End()
}

// The page, and the room around a panel's plot, in pixels.
const (
	width, height            = 1120, 860
	header                   = 40
	left, right, top, bottom = 84, 30, 34, 44
)

// cell returns the place of the panel in a column and a row of the page, which
// has two columns.
func cell(column, row int) plot.Box {
	const w, h = width / 2, float64(height-header) / 2
	return plot.Box{X: float64(column)*w + left, Y: header + float64(row)*h + top, W: w - left - right,
		H: h - top - bottom}
}

// newPanel makes a panel with the number of nodes from left to right.
func newPanel(title, label string, y plot.Axis) *plot.Panel {
	return &plot.Panel{Title: title, XLabel: "nodes", YLabel: label, X: plot.Axis{Lo: 10, Hi: 10000, Log: true}, Y: y}
}

// nodeRange is 10 to 10,000 in equal steps of the logarithm.
func nodeRange() (nodes []int) {
	const perDecade = 40
	for i := range 3*perDecade + 1 {
		nodes = append(nodes, int(math.Round(math.Pow(10, 1+float64(i)/perDecade))))
	}
	return nodes
}

func served(points []Incast) (pts []plot.Point) {
	for _, p := range points {
		pts = append(pts, plot.Point{X: float64(p.Nodes), Y: float64(p.Nodes-p.Refused-p.Starved) / float64(p.Nodes)})
	}
	return pts
}

func fairness(points []Incast) (pts []plot.Point) {
	for _, p := range points {
		pts = append(pts, plot.Point{X: float64(p.Nodes), Y: p.Fairness})
	}
	return pts
}

// memoryPanel shows a node's memory when every node has a session to every
// other.
func (r *Report) memoryPanel() *plot.Panel {
	p := newPanel("Every node to every other: memory of a node", "MiB", plot.Axis{Lo: 0.1, Hi: 1000, Log: true})
	var sessions, idle, most, measured []plot.Point
	for _, n := range nodeRange() {
		m, x := r.MemoryOf(n), float64(n)
		sessions = append(sessions, plot.Point{X: x, Y: mib(m.Modelled)})
		idle = append(idle, plot.Point{X: x, Y: mib(m.Idle)})
		most = append(most, plot.Point{X: x, Y: mib(m.Most)})
	}
	for _, m := range r.Memory {
		if m.Measured > 0 {
			measured = append(measured, plot.Point{X: float64(m.Nodes), Y: mib(m.Measured)})
		}
	}
	p.Line("every buffer once in use", plot.Red, most)
	p.Line("idle: packets, domain, sessions", plot.Blue, idle)
	p.Line("sessions alone", plot.Green, sessions)
	p.Dots("sessions alone, measured", plot.Green, measured)
	p.Limit(float64(r.Setup.Sessions/2+1), "one queue")
	return p
}
