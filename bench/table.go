// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// print writes a table for each group: medians, and of the main figure also the least
// and the greatest of the rounds.
func (r *results) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	group := ""
	for _, e := range r.plan {
		if e.group != group {
			group = e.group
			fmt.Fprintf(w, "\n%s\n", group)
			fmt.Fprintln(w, "  \t\tleast–most\tp99\tp99.9\tp99.99\tCPU s/M ops\tallocs/op\tnear\t")
			fmt.Fprintf(w, "  \t%s\t\tµs\tµs\tµs\tclient+server\t\t\t\n", mainFigure(group).head)
		}
		fmt.Fprintln(w, r.row(e))
	}
	w.Flush()
	fmt.Fprintf(out, "\n%s\n", r.cores())
	if r.retaken > 0 {
		fmt.Fprintf(out, "\n%d samples were disturbed and taken again.\n", r.retaken)
	}
}

// figure is what a column shows.
type figure struct {
	head string
	of   func(*sample) float64
	unit float64 // by which it is divided
}

// mainFigure is the first column of a group.
func mainFigure(group string) figure {
	switch group {
	case roundTrips, messageTrips, tails, besideGarbage, handovers, puts:
		return figure{"p50 µs", p50, 1e3}
	case streams:
		return figure{"GB/s", goodput, 1e9}
	default:
		return figure{"M/s", rate, 1e6}
	}
}

func (r *results) row(e entry) string {
	main := mainFigure(e.group)
	v := known(r.values(e.id, main.of))
	if len(v) == 0 {
		return fmt.Sprintf("  %s\t–\t\t\t\t\t\t\t\t%s", e.name, r.flags(e.id))
	}
	cells := []string{"  " + e.name, number(r.median(e.id, main.of) / main.unit),
		number(slices.Min(v)/main.unit) + "–" + number(slices.Max(v)/main.unit)}
	for _, q := range []func(*sample) float64{p99, p999, p9999} {
		cells = append(cells, dashed(r.median(e.id, q)/1e3))
	}
	cells = append(cells, number(r.median(e.id, clientCPU))+"+"+number(r.median(e.id, serverCPU)))
	alloc := "–"
	if slices.ContainsFunc(r.samples[e.id], func(s sample) bool { _, ok := s.Extra["allocs_per_op"]; return ok }) {
		alloc = fmt.Sprintf("%.4f", r.median(e.id, allocs))
	}
	if e.hosted {
		alloc += fmt.Sprintf(" host %.4f", r.median(e.id, allocsOfHost))
	}
	cells = append(cells, alloc, fmt.Sprintf("%d/%d", len(r.nearRounds(e.id)), len(v)))
	return strings.Join(append(cells, r.flags(e.id)), "\t")
}

// flags reports how many samples failed or were disturbed, with the first reason, and how
// many requests were lost in all.
func (r *results) flags(id string) string {
	var flags, failed []string
	var lost uint64
	for _, s := range r.samples[id] {
		lost += s.Lost
		if s.Failed != "" {
			failed = append(failed, firstLine(s.Failed))
		}
		if s.Disturbed != "" {
			flags = append(flags, s.Disturbed)
		}
	}
	if len(failed) > 0 {
		return fmt.Sprintf("failed %d of %d: %s", len(failed), len(r.samples[id]), failed[0])
	}
	var all []string
	if lost > 0 {
		all = append(all, fmt.Sprintf("%d lost", lost))
	}
	if len(flags) > 0 {
		all = append(all, fmt.Sprintf("disturbed %d of %d: %s", len(flags), len(r.samples[id]), flags[0]))
	}
	return strings.Join(all, "; ")
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// number prints a value with three digits.
func number(v float64) string {
	if v == 0 {
		return "0"
	}
	digits := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return fmt.Sprintf("%.*f", min(max(digits, 0), 4), v)
}

// dashed is number, with a dash for a value that is not known.
func dashed(v float64) string {
	if v == 0 {
		return "–"
	}
	return number(v)
}
