// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Colours that a reader who sees few of them can still tell apart: blue, orange, green, grey.
const (
	blue, orange, green = "#0072b2", "#d55e00", "#009e73"
	grey, ink           = "#999999", "#222222"
)

// canvas collects the elements of a drawing.
type canvas struct{ strings.Builder }

func (c *canvas) line(x1, y1, x2, y2 float64, colour string, width float64) {
	fmt.Fprintf(c, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="%s" stroke-width="%g"/>`+"\n", x1, y1, x2, y2, colour, width)
}

func (c *canvas) text(x, y float64, anchor string, size int, text string) {
	fmt.Fprintf(c, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="%s">%s</text>`+"\n", x, y, anchor, size, ink, html.EscapeString(text))
}

func (c *canvas) bar(x, y, width, height float64, colour string) {
	fmt.Fprintf(c, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", x, y, max(width, 0), height, colour)
}

func (c *canvas) polyline(points [][2]float64, colour string) {
	var p []string
	for _, q := range points {
		p = append(p, fmt.Sprintf("%.1f,%.1f", q[0], q[1]))
		fmt.Fprintf(c, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", q[0], q[1], colour)
	}
	fmt.Fprintf(c, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(p, " "), colour)
}

// axis maps values to places on a logarithmic scale between whole decades.
type axis struct{ low, high, from, to float64 }

func logAxis(values []float64, from, to float64) axis {
	a := axis{low: math.Inf(1), high: math.Inf(-1), from: from, to: to}
	for _, v := range values {
		if v > 0 {
			a.low, a.high = min(a.low, v), max(a.high, v)
		}
	}
	if a.low > a.high { // nothing to show
		a.low, a.high = 1, 10
	}
	// A value that is a decade but for rounding begins none.
	a.low = math.Pow(10, math.Floor(math.Log10(a.low*1.01)))
	a.high = math.Pow(10, math.Ceil(math.Log10(a.high/1.01)))
	if a.high <= a.low {
		a.high = 10 * a.low
	}
	return a
}

func (a axis) at(v float64) float64 {
	if v <= 0 {
		return a.from
	}
	return a.from + (a.to-a.from)*math.Log10(v/a.low)/math.Log10(a.high/a.low)
}

// decades are the places of the ticks.
func (a axis) decades() []float64 {
	var d []float64
	for v := a.low; v <= a.high*1.001; v *= 10 {
		d = append(d, v)
	}
	return d
}

// series is a line of the plot of latency against load.
type series struct {
	name, colour string
	of           func(*sample) float64
}

var curves = []series{{"p50", blue, p50}, {"p99", orange, p99}, {"p99.9", green, p999}}

// plot draws latency against load, and throughput and round trips of all.
func (r *report) plot() string {
	const width, height = 1120, 760
	c := &canvas{}
	fmt.Fprintf(c, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %[1]d %[2]d" font-family="sans-serif">`+"\n", width, height)
	fmt.Fprintf(c, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	c.text(24, 34, "start", 20, "xdpfab, its floor and its peers, in one run")
	m := r.Machine
	c.text(24, 56, "start", 12, fmt.Sprintf("%s, %d cores, Linux %s, commit %s; one veth pair, a core for each side, medians of %d rounds",
		m.CPU, m.Cores, m.Kernel, m.Commit, r.Rounds))
	r.plotLoad(c, 70, 110, 450, 560)
	r.plotBars(c, 560, 110, roundTrips, "Round trip p50, µs (log scale, less is better)", p50, 1e3, 268)
	r.plotBars(c, 560, 410, throughputs, "Throughput, million operations a second (log scale)", rate, 1e6, 300)
	c.WriteString("</svg>\n")
	return c.String()
}

// plotLoad draws latency against offered load.
func (r *report) plotLoad(c *canvas, x, y, width, height float64) {
	var xs, ys []float64
	for i := range r.Load {
		xs = append(xs, r.Load[i].OpsPerSecond()/1e6)
		for _, s := range curves {
			ys = append(ys, s.of(&r.Load[i].sample)/1e3)
		}
	}
	ax, ay := logAxis(xs, x, x+width), logAxis(ys, y+height, y)
	c.text(x, y-14, "start", 14, "Latency against load, µs (fetch-add, open loop)")
	for _, v := range ax.decades() {
		c.line(ax.at(v), y, ax.at(v), y+height, "#dddddd", 1)
		c.text(ax.at(v), y+height+18, "middle", 12, plain10(v))
	}
	for _, v := range ay.decades() {
		c.line(x, ay.at(v), x+width, ay.at(v), "#dddddd", 1)
		c.text(x-8, ay.at(v)+4, "end", 12, plain10(v))
	}
	c.text(x+width/2, y+height+40, "middle", 13, "million operations a second, carried")
	for i, s := range curves {
		var points [][2]float64
		for j := range r.Load {
			points = append(points, [2]float64{ax.at(xs[j]), ay.at(s.of(&r.Load[j].sample) / 1e3)})
		}
		c.polyline(points, s.colour)
		top := y + 18 + float64(i)*20
		c.bar(x+14, top-9, 18, 10, s.colour)
		c.text(x+40, top, "start", 13, s.name)
	}
}

// plotBars draws a bar for each contest of a group, and its value.
func (r *report) plotBars(c *canvas, x, y float64, group, title string, of func(*sample) float64, unit, height float64) {
	const label, width = 250, 230
	var entries []entry
	var values []float64
	for _, e := range r.results.plan {
		if e.group == group {
			entries, values = append(entries, e), append(values, r.results.median(e.id, of)/unit)
		}
	}
	if len(entries) == 0 {
		return
	}
	c.text(x, y-14, "start", 14, title)
	a := logAxis(values, x+label, x+label+width)
	step := height / float64(len(entries))
	for i, e := range entries {
		top := y + float64(i)*step
		c.text(x+label-8, top+step*0.7, "end", 11, e.name)
		c.bar(x+label, top+step*0.12, a.at(values[i])-x-label, step*0.76, colourOf(e.id))
		c.text(a.at(values[i])+5, top+step*0.7, "start", 11, number(values[i]))
	}
	c.line(x+label, y, x+label, y+height, ink, 1)
}

// colourOf tells the floor, ourselves and the peers apart.
func colourOf(id string) string {
	for prefix, colour := range map[string]string{"floor": grey, "ucx": orange, "libfabric": orange, "plain": orange} {
		if strings.HasPrefix(id, prefix) {
			return colour
		}
	}
	return blue
}

// plain10 prints a power of ten, without an exponent.
func plain10(v float64) string {
	return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64)
}
