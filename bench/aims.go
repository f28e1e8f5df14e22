// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// aim is something that the project wants to be true, and whether it is.
type aim struct {
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Unit   string  `json:"unit"` // "x" for a ratio
	Limit  float64 `json:"limit"`
	AtMost bool    `json:"at_most"` // else at least
	Met    bool    `json:"met"`
	Note   string  `json:"note,omitempty"`
	Why    string  `json:"why"` // this limit, and no other

	contests []string // that it is judged by; without them it was not measured
}

const (
	kibi = 1 << 10
	mebi = 1 << 20
)

func atMost(what string, value float64, unit string, limit float64) aim {
	return aim{What: what, Value: value, Unit: unit, Limit: limit, AtMost: true, Met: value <= limit}
}

func atLeast(what string, value float64, unit string, limit float64) aim {
	return aim{What: what, Value: value, Unit: unit, Limit: limit, Met: value >= limit}
}

// because gives the reason for the limit.
func (a aim) because(why string) aim {
	a.Why = why
	return a
}

// of names the contests by which the aim is judged, and notes in how many of the rounds
// the cores were near in all of them.
func (a aim) of(m *results, contests ...string) aim {
	a.contests = contests
	a.Note = fmt.Sprintf("near in %d of %d", len(m.nearRounds(contests...)), m.rounds)
	return a
}

// atMost is an aim for the ratio of two contests within a round; less is better.
func (m *results) atMost(what string, of func(*sample) float64, a, b string, limit float64) aim {
	return atMost(what, m.ratio(a, b, of), "x", limit).of(m, a, b)
}

// atLeast is the same where more is better.
func (m *results) atLeast(what string, of func(*sample) float64, a, b string, limit float64) aim {
	return atLeast(what, m.ratio(a, b, of), "x", limit).of(m, a, b)
}

// toFloor is an aim for the ratio of a round trip to the floor's. The floor gains more
// from near cores than anything that has a working set does, so there is another limit if
// the cores were never near.
func (m *results) toFloor(what, id string, nearLimit, otherLimit float64) aim {
	limit := otherLimit
	if len(m.nearRounds(id, "floor")) > 0 {
		limit = nearLimit
	}
	a := m.atMost(what, p50, id, "floor", limit)
	a.Note += fmt.Sprintf("; best rounds: %s x", number(m.ratioOfBest(id, "floor")))
	return a
}

// checked marks aims as missed whose ratios were not measured.
func checked(aims []aim) []aim {
	for i := range aims {
		if aims[i].Unit == "x" && aims[i].Value == 0 {
			aims[i].Met, aims[i].Note = false, "not measured"
		}
	}
	return aims
}

// judgeable leaves out the aims that are judged by contests which are not in the plan.
func (m *results) judgeable(aims []aim) []aim {
	return slices.DeleteFunc(aims, func(a aim) bool { return len(pick(m.plan, a.contests...)) < len(a.contests) })
}

// sign and verdict are what tables say.
func (a aim) sign() string {
	if a.AtMost {
		return "≤"
	}
	return "≥"
}

func (a aim) verdict() string {
	if a.Met {
		return "met"
	}
	return "MISSED"
}

func printAims(out io.Writer, aims []aim) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "\nAims\n  \tmeasured\taim\t\t")
	for _, a := range aims {
		fmt.Fprintf(w, "  %s\t%s %s\t%s %s %s\t%s\t%s\n", a.What, number(a.Value), a.Unit, a.sign(),
			number(a.Limit), a.Unit, a.verdict(), a.Note)
	}
	w.Flush()
	met := len(aims) - len(slices.DeleteFunc(slices.Clone(aims), func(a aim) bool { return a.Met }))
	fmt.Fprintf(out, "\n%d of %d aims are met.\n", met, len(aims))
}

// row is the aim in a Markdown table, with the value measured or without.
func (a aim) row(measured bool) string {
	unit := a.Unit
	if unit == "x" {
		unit = "×"
	}
	if unit != "" {
		unit = " " + unit
	}
	limit := fmt.Sprintf("%s %s%s", a.sign(), number(a.Limit), unit)
	if !measured {
		return fmt.Sprintf("| %s | %s | %s |", a.What, limit, a.Why)
	}
	return fmt.Sprintf("| %s | %s%s | %s | %s | %s |", a.What, number(a.Value), unit, limit, a.verdict(), a.Why)
}

// markdown is the table of docs/performance.md, with what was measured.
func markdown(out io.Writer, aims []aim) {
	fmt.Fprintln(out, "| | measured | aim | | why |\n|---|---|---|---|---|")
	for _, a := range aims {
		fmt.Fprintln(out, a.row(true))
	}
}
