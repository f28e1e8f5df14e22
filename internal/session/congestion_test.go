// SPDX-License-Identifier: Apache-2.0

package session

import "testing"

// run feeds round trips, one per answer, and returns the window.
func ccRun(c *congestion, now *int64, n int, rtt int64) float64 {
	for range n {
		*now += max(rtt/int64(c.window), 1)
		c.answered(*now, rtt, 50_000, MaxWindow)
	}
	return c.window
}

func TestWindowGrowsWithoutQueueing(t *testing.T) {
	var c congestion
	now := int64(1)
	c.start(MaxWindow)
	if w := ccRun(&c, &now, 200, 5_000); w != MaxWindow {
		t.Errorf("window %v after 200 answers without delay, want %d", w, MaxWindow)
	}
}

func TestWindowShrinksWithDelayAndRecovers(t *testing.T) {
	var c congestion
	now := int64(1)
	c.start(MaxWindow)
	ccRun(&c, &now, 200, 5_000)
	if w := ccRun(&c, &now, 400, 2_000_000); w > 2 {
		t.Errorf("window %v at 2 ms of queueing, want near 1", w)
	}
	if w := ccRun(&c, &now, 5_000, 20_000); w < MaxWindow-1 {
		t.Errorf("window %v after the queue is gone, want %d", w, MaxWindow)
	}
}

// Answers that waited for the target's program open the window, too, and after losses
// again: a session on the memory of a program has no others.
func TestWindowGrowsWhereProgramsAnswer(t *testing.T) {
	p := newPair(t, 1, Config{})
	p.open()
	p.busy = true
	for range 4 {
		p.now += 1e6
		p.ini.cc.lost(p.now, 1)
	}
	least := p.ini.cc.window
	p.run(2 * MaxWindow * MaxWindow)
	if w := p.ini.cc.window; least > initialWindow/2 || w < MaxWindow-1 {
		t.Errorf("window %v after losses, and %v after answers of the program; want less than %d, and %d", least, w,
			initialWindow/2, MaxWindow)
	}
}

// One burst of losses costs one decrease, not one for each frame.
func TestOneDecreaseARoundTrip(t *testing.T) {
	var c congestion
	now := int64(1)
	c.start(MaxWindow)
	ccRun(&c, &now, 200, 5_000)
	for range 20 {
		c.lost(now, 5_000)
	}
	if want := MaxWindow * (1 - lossCut); c.window != want {
		t.Errorf("window %v after a burst of losses, want %v", c.window, want)
	}
}

// Two windows that share a bottleneck approach each other: both see the same
// delay, and the larger one gives more.
func TestWindowsConverge(t *testing.T) {
	var a, b congestion
	a.start(MaxWindow)
	b.start(MaxWindow)
	a.window, b.window, a.slow, b.slow = 60, 4, false, false
	now := int64(1)
	const base, service = 10_000, 5_000 // ns: path, and bottleneck a frame
	a.observe(now, base)
	b.observe(now, base)
	for range 4000 {
		queue := max(int64(a.window+b.window)*service-base, 0)
		rtt := base + queue
		now += rtt
		for range int(a.window) {
			a.answered(now, rtt, 50_000, MaxWindow)
		}
		for range int(b.window) {
			b.answered(now, rtt, 50_000, MaxWindow)
		}
	}
	if ratio := a.window / b.window; ratio > 1.5 || ratio < 0.67 {
		t.Errorf("windows %.1f and %.1f, want them alike", a.window, b.window)
	}
}
