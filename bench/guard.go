// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
)

// limit is a bound that the guard checks: on the ratio of two contests within one run,
// or, if it names only one, on a figure that does not depend on time.
type limit struct {
	Name    string  `json:"name"`
	Of      string  `json:"of"` // "p50", "rate", "goodput" or "allocs"
	Contest string  `json:"contest"`
	To      string  `json:"to"` // the other contest; "" for none
	AtMost  float64 `json:"at_most,omitempty"`
	AtLeast float64 `json:"at_least,omitempty"`
}

var measures = map[string]func(*sample) float64{"p50": p50, "rate": rate, "goodput": goodput, "allocs": allocs}

// parseLimits reads and checks the file of limits.
func parseLimits(b []byte, plan []entry) ([]limit, error) {
	var limits []limit
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&limits); err != nil {
		return nil, err
	}
	for _, l := range limits {
		switch {
		case measures[l.Of] == nil:
			return nil, fmt.Errorf("limit %q is of %q: want p50, rate, goodput or allocs", l.Name, l.Of)
		case len(pick(plan, l.Contest)) == 0 || l.To != "" && len(pick(plan, l.To)) == 0:
			return nil, fmt.Errorf("limit %q: there is no contest %q or no %q", l.Name, l.Contest, l.To)
		case l.To == "" && l.Of != "allocs":
			return nil, fmt.Errorf("limit %q: %s depends on the machine: want a ratio to another contest", l.Name, l.Of)
		case (l.AtMost > 0) == (l.AtLeast > 0):
			return nil, fmt.Errorf("limit %q: want at_most or at_least, and not 0", l.Name)
		}
	}
	if len(limits) == 0 {
		return nil, fmt.Errorf("no limits: want at least one")
	}
	return limits, nil
}

// check returns the value that the limit bounds, and whether the limit is kept.
func (l limit) check(r *results) (value float64, kept bool) {
	if l.To == "" {
		value = r.median(l.Contest, measures[l.Of])
	} else {
		value = r.ratio(l.Contest, l.To, measures[l.Of])
	}
	return value, l.AtMost > 0 && value <= l.AtMost || l.AtLeast > 0 && value >= l.AtLeast
}

const (
	guardRounds   = 8
	guardAttempts = 3 // noise does not exceed a limit three times running; a regression does
)

// guard fails if a limit is exceeded in every attempt.
func guard(ctx context.Context, n *network, out io.Writer, file string) error {
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	limits, err := parseLimits(b, fullPlan(sampleTime))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for attempt := 1; len(limits) > 0 && attempt <= guardAttempts; attempt++ {
		var ids []string
		for _, l := range limits {
			for _, id := range []string{l.To, l.Contest} {
				if id != "" && !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		r, err := n.rounds(ctx, pick(fullPlan(sampleTime), ids...), budget{rounds: guardRounds})
		if err != nil {
			return err
		}
		limits = exceeded(out, limits, r)
	}
	if len(limits) > 0 {
		return fmt.Errorf("%d limits of %s were exceeded %d times running", len(limits), file, guardAttempts)
	}
	return nil
}

// exceeded prints how each limit fares, and returns those that are not kept.
func exceeded(out io.Writer, limits []limit, r *results) []limit {
	var left []limit
	for _, l := range limits {
		value, kept := l.check(r)
		verdict, bound := "ok", fmt.Sprintf("at most %g", l.AtMost)
		if l.AtLeast > 0 {
			bound = fmt.Sprintf("at least %g", l.AtLeast)
		}
		if !kept {
			verdict = "EXCEEDED"
			left = append(left, l)
		}
		fmt.Fprintf(out, "%-9s %s: %s, want %s\n", verdict, l.Name, number(value), bound)
	}
	return left
}
