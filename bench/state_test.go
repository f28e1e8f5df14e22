// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestStateOf(t *testing.T) {
	for _, c := range []struct {
		before, after float64
		want          coreState
	}{
		{25, 55, near}, {99.9, 99.9, near}, {100, 100, far}, {280, 566, far},
		{55, 280, mixed}, {280, 55, mixed}, {99.9, 100, mixed},
		{0, 55, mixed}, {280, 0, mixed}, {0, 0, mixed},
	} {
		if got := stateOf(c.before, c.after); got != c.want {
			t.Errorf("%v and %v ns: %s, want %s", c.before, c.after, got, c.want)
		}
	}
}

// tagged returns results of trip and floor whose rounds have these figures, in ns, and
// states.
func tagged(trip, floor []int64, trips, floors []coreState) *results {
	r := made(pick(fullPlan(sampleTime), "floor", "trip"), nil, nil, nil)
	one := r.samples["trip"][0]
	r.rounds = len(trip)
	fill := func(figures []int64, states []coreState) (out []sample) {
		for i := range figures {
			s := one
			s.Round, s.Latency.P50, s.State = i, figures[i], states[i]
			out = append(out, s)
		}
		return out
	}
	r.samples["trip"], r.samples["floor"] = fill(trip, trips), fill(floor, floors)
	return r
}

// A ratio is that of the rounds in which both samples are near. The others do not count,
// however many they are, unless there is no such round.
func TestRatioIsOfNearRounds(t *testing.T) {
	trip, floor := []int64{6400, 7700, 7800, 6000, 6600}, []int64{4000, 6300, 6200, 6000, 4000}
	r := tagged(trip, floor, []coreState{near, far, far, near, near}, []coreState{near, far, far, mixed, near})
	if got := r.ratio("trip", "floor", p50); got != 1.625 {
		t.Errorf("ratio %v, want 1.625, of the first and the last round", got)
	}
	if got := r.median("trip", p50); got != 6400 {
		t.Errorf("median %v, want 6400, of three near samples", got)
	}
	if got := r.median("floor", p50); got != 4000 {
		t.Errorf("the floor's median %v, want 4000", got)
	}
	var out bytes.Buffer
	r.print(&out)
	if row := regexp.MustCompile(`manual +6\.40 +6\.00–7\.80 .* 3/5`); !row.MatchString(out.String()) {
		t.Errorf("no row %v, of the near samples' median, in\n%s", row, out.String())
	}
	// A near sample that failed counts nowhere.
	r.samples["floor"][4].Failed = "gone"
	if got := r.ratio("trip", "floor", p50); got != 1.6 {
		t.Errorf("with a failure: ratio %v, want 1.6", got)
	}
	if got := r.nearRounds("trip", "floor"); !slices.Equal(got, []int{0}) {
		t.Errorf("near rounds %v, want the first alone", got)
	}
	// No round in which both are near: all count.
	r = tagged(trip, floor, []coreState{near, far, far, near, near}, []coreState{far, far, far, mixed, far})
	if got, want := r.ratio("trip", "floor", p50), 7800.0/6200; got != want {
		t.Errorf("without near rounds: ratio %v, want %v", got, want)
	}
	if got := r.median("trip", p50); got != 6400 {
		t.Errorf("without near rounds: median %v, want 6400", got)
	}
	if got := r.ratio("trip", "nobody", p50); got != 0 {
		t.Errorf("to nobody: %v, want 0", got)
	}
}

func TestShares(t *testing.T) {
	r := tagged([]int64{1, 1, 1, 1}, []int64{1, 1, 1, 1}, []coreState{near, near, near, far}, []coreState{mixed, near, far, near})
	r.samples["floor"][0].Failed = "gone" // it counts nowhere
	s := r.shares()
	if s[near] != 5.0/7 || s[far] != 2.0/7 || s[mixed] != 0 {
		t.Errorf("%v, want 5/7 near, 2/7 far", s)
	}
	if got := r.cores(); !strings.Contains(got, "in 71 % of the samples, far in 29 %, mixed in 0 %") {
		t.Error(got)
	}
	if s := (&results{}).shares(); len(s) != 0 {
		t.Errorf("of no samples: %v", s)
	}
}
