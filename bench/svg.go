// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"strings"

	"github.com/xdpfab/xdpfab/internal/plot"
)

// curves are the percentiles that are drawn against load.
var curves = []struct {
	name, colour string
	of           func(*sample) float64
}{{"p50", plot.Blue, p50}, {"p99", plot.Orange, p99}, {"p99.9", plot.Green, p999}}

// plot draws latency against load, and the throughput and round trips of all contests.
func (r *report) plot() []byte {
	s := plot.NewSheet(1120, 760)
	s.Text(24, 34, 20, plot.Start, plot.Black, "xdpfab, its floor and its peers, in one run")
	m := r.Machine
	s.Text(24, 56, 12, plot.Start, plot.Black,
		fmt.Sprintf("%s, %d cores, Linux %s, commit %s; one veth pair, a core for each side, medians of %d rounds",
			m.CPU, m.Cores, m.Kernel, m.Commit, r.Rounds))
	r.loadPanel().Draw(s, plot.Box{X: 84, Y: 110, W: 436, H: 560})
	s.Bars(plot.Box{X: 810, Y: 110, W: 230, H: 268}, "Round trip p50, µs (log scale, less is better)",
		r.bars(roundTrips, p50, 1e3))
	s.Bars(plot.Box{X: 810, Y: 410, W: 230, H: 300}, "Throughput, million operations a second (log scale)",
		r.bars(throughputs, rate, 1e6))
	return s.End()
}

// loadPanel draws latency against carried load.
func (r *report) loadPanel() *plot.Panel {
	var xs, ys []float64
	lines := make([][]plot.Point, len(curves))
	for i := range r.Load {
		x := r.Load[i].OpsPerSecond() / 1e6
		xs = append(xs, x)
		for j, c := range curves {
			y := c.of(&r.Load[i].sample) / 1e3
			ys = append(ys, y)
			lines[j] = append(lines[j], plot.Point{X: x, Y: y})
		}
	}
	p := &plot.Panel{Title: "Latency against load (fetch-add, open loop)",
		XLabel: "million operations a second, carried", YLabel: "µs",
		X: plot.Decades(xs...), Y: plot.Decades(ys...)}
	for j, c := range curves {
		p.Joined(c.name, c.colour, lines[j])
	}
	return p
}

// bars returns a bar for each contest of a group.
func (r *report) bars(group string, of func(*sample) float64, unit float64) (bars []plot.Bar) {
	for _, e := range r.results.plan {
		if e.group == group {
			v := r.results.median(e.id, of) / unit
			bars = append(bars, plot.Bar{Name: e.name, Colour: colourOf(e.id), Value: v, Text: number(v)})
		}
	}
	return bars
}

// colourOf tells the floor, ourselves and the peers apart.
func colourOf(id string) string {
	for prefix, colour := range map[string]string{"floor": plot.Grey, "ucx": plot.Orange, "libfabric": plot.Orange,
		"plain": plot.Orange} {
		if strings.HasPrefix(id, prefix) {
			return colour
		}
	}
	return plot.Blue
}
