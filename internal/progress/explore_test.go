// SPDX-License-Identifier: Apache-2.0

package progress

import "testing"

// inEngine counts the threads that use the engine.
func (w world) inEngine() (n int) {
	for _, t := range w.threads {
		switch t.at {
		case stepping, raising, again, freeing, posterFree, pollStep, pollRaise, pollAgain, pollFree,
			attendStep, attendRaise, attendAgain, attendFree:
			n++
		}
	}
	return n
}

// unheard reports that a goroutine is parked and its signal raised, but no message is on
// its way: it would have to wait until another one does not need the turn any more.
func (w world) unheard() bool {
	for j, t := range w.threads {
		if t.at == parked && t.ready && !t.message && !w.raises(j) {
			return true
		}
	}
	return false
}

// raises reports that a thread is in the second half of Raise for goroutine j.
func (w world) raises(j int) bool {
	for _, t := range w.threads {
		if (t.at == raising || t.at == pollRaise || t.at == attendRaise) && int(t.target) == j {
			return true
		}
	}
	return false
}

// over reports that a world is final: all goroutines have left, and the poller steps or,
// after Close, no thread steps again.
func (m model) over(w world) bool {
	for _, t := range w.threads {
		if t.at != finished && t.at != pollStep {
			return false
		}
	}
	return !m.poller || m.closer || w.turn == held
}

// explore goes through all worlds. It returns what is wrong: two threads in the engine, a
// step after the end, a raise that is not heard, or a world from which no order of moves
// leads to the end, so that a thread waits for a lost wake-up.
func (m model) explore() (worlds int, wrong string) {
	index := map[world]int32{}
	var all []world
	var before [][]int32 // the worlds that lead to each world
	visit := func(w world) int32 {
		n, known := index[w]
		if !known {
			n = int32(len(all))
			index[w] = n
			all = append(all, w)
			before = append(before, nil)
		}
		return n
	}
	visit(m.begin())
	var good []int32
	for n := int32(0); int(n) < len(all); n++ {
		w := all[n]
		switch in := w.inEngine(); {
		case in > 1:
			return len(all), "two threads are in the engine"
		case in == 1 && m.ended(w):
			return len(all), "a thread steps after the end"
		case w.unheard():
			return len(all), "a goroutine whose signal was raised stays parked"
		}
		if m.over(w) {
			good = append(good, n)
		}
		for i := range w.threads {
			m.moves(w, i, func(next world) {
				to := visit(next)
				before[to] = append(before[to], n)
			})
		}
	}
	reached := make([]bool, len(all))
	for _, n := range good {
		reached[n] = true
	}
	for len(good) > 0 {
		n := good[len(good)-1]
		good = good[:len(good)-1]
		for _, b := range before[n] {
			if !reached[b] {
				reached[b] = true
				good = append(good, b)
			}
		}
	}
	for _, ok := range reached {
		if !ok {
			return len(all), "a wake-up is lost"
		}
	}
	return len(all), ""
}

// ended reports that Close has returned.
func (m model) ended(w world) bool {
	if !m.closer {
		return false
	}
	for _, t := range w.threads {
		if t.at >= closePhase {
			return false
		}
	}
	return true
}

func TestModel(t *testing.T) {
	if testing.Short() {
		t.Skip("a long computation: run without -short")
	}
	for name, m := range map[string]model{
		"manual, three wait":             {waiters: 3},
		"manual, contexts end":           {waiters: 3, contexts: true},
		"manual, two post":               {waiters: 2, posters: 2, contexts: true},
		"manual, closed":                 {waiters: 2, posters: 1, contexts: true, closer: true},
		"automatic, two wait":            {waiters: 2, poller: true},
		"automatic, contexts end":        {waiters: 2, poller: true, contexts: true},
		"automatic, two wait, one posts": {waiters: 2, posters: 1, poller: true},
		"automatic, two post":            {waiters: 1, posters: 2, poller: true},
		"automatic, two wait, closed":    {waiters: 2, poller: true, closer: true},
		"automatic, one posts, closed":   {waiters: 1, posters: 1, poller: true, closer: true},
		"one waits, one attends":         {waiters: 1, attend: 1, poller: true},
		"two wait, one attends":          {waiters: 2, attend: 1, poller: true},
		"one waits, two attend":          {waiters: 1, attend: 2, poller: true},
		"one attends, one posts":         {attend: 1, posters: 1, poller: true},
		"one attends, closed":            {waiters: 1, attend: 1, poller: true, closer: true},
	} {
		t.Run(name, func(t *testing.T) {
			n, wrong := m.explore()
			if wrong != "" {
				t.Error(wrong)
			}
			t.Logf("%d states", n)
		})
	}
}

// The model finds each of these bugs.
func TestModelFindsBugs(t *testing.T) {
	for bug, m := range map[string]model{
		"release looks first":        {waiters: 2},
		"counts after the attempt":   {waiters: 2},
		"no baton":                   {waiters: 2},
		"keeps the baton":            {waiters: 3},
		"parks without a look":       {waiters: 2},
		"raise wakes nobody":         {waiters: 2},
		"a poster forgets the baton": {waiters: 1, posters: 1},
		"no rouse":                   {waiters: 1, poller: true},
		"naps without a look":        {waiters: 1, poller: true},
		"attends, no rouse":          {attend: 1, poller: true},
		"attends, no baton":          {waiters: 1, attend: 1},
		"releases nobody":            {waiters: 1, closer: true},
		"does not retire":            {waiters: 1, closer: true},
	} {
		t.Run(bug, func(t *testing.T) {
			if _, wrong := m.explore(); wrong != "" {
				t.Fatalf("%s without the bug", wrong)
			}
			m.bug = bug
			n, wrong := m.explore()
			if wrong == "" {
				t.Errorf("nothing is wrong in %d states", n)
			}
			t.Log(wrong)
		})
	}
}
