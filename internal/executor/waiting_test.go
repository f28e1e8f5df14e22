// SPDX-License-Identifier: Apache-2.0

package executor_test

import (
	"slices"
	"testing"
)

// explored is what going through all states of a model found.
type explored struct {
	states int
	bad    string // the first rule that was broken
	stuck  int    // states from which no way leads to the end, though callers go on asking
}

// explore goes through the states that the first leads to. Three callers are patient:
// they do not cancel, and the target does not restart, so that only what threads do and
// what has been sent leads to the end. Two do anything.
func explore(b bug, patient bool) (x explored) {
	first := start(2)
	if patient {
		first = start(3)
	}
	number := map[world]int{first: 0}
	all, from := []world{first}, [][]int{nil}
	for at := 0; at < len(all); at++ {
		w := all[at]
		if w.bad != "" {
			x.bad = w.bad
			break
		}
		w.moves(b, func(next world) {
			if patient && (next.life > 0 || slices.Contains(next.stages[:], cancelling)) {
				return
			}
			n, known := number[next]
			if !known {
				n = len(all)
				number[next] = n
				all, from = append(all, next), append(from, nil)
			}
			from[n] = append(from[n], at)
		})
	}
	x.states = len(all)
	reaches := make([]bool, len(all))
	var todo []int
	for n := range all {
		if all[n].ended() {
			reaches[n], todo = true, append(todo, n)
		}
	}
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, before := range from[n] {
			if !reaches[before] {
				reaches[before], todo = true, append(todo, before)
			}
		}
	}
	for _, does := range reaches {
		if !does {
			x.stuck++
		}
	}
	return x
}

// Operations that wait at the target run once or never, as their callers are told, in the
// order in which they came, and nobody waits for ever, in all orders of events.
func TestWaitingModel(t *testing.T) {
	for name, patient := range map[string]bool{"patient": true, "any": false} {
		x := explore(sound, patient)
		if x.bad != "" || x.stuck > 0 || x.states < 100 {
			t.Errorf("%s callers: %+v", name, x)
		}
		t.Logf("%s callers: %d states", name, x.states)
	}
}

// The model notices what could be wrong with the protocol.
func TestWaitingModelFindsBugs(t *testing.T) {
	for name, x := range map[string]struct {
		bug     bug
		patient bool
		bad     string // empty if somebody waits for ever
	}{
		"lost wake-up":          {looksFirst, true, ""},
		"parked twice":          {parksTwice, true, "an operation ran twice"},
		"not first come":        {barges, true, "a caller overtakes one that came before"},
		"cancelled, and runs":   {leaves, false, "a caller takes an operation for cancelled that ran"},
		"news of a former life": {anyLife, false, "a caller takes an operation for done that did not run once"},
	} {
		found := explore(x.bug, x.patient)
		if found.bad != x.bad || x.bad == "" && found.stuck == 0 {
			t.Errorf("%s: %+v, want %q", name, found, x.bad)
		}
	}
}
