// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"
)

func TestNeighbours(t *testing.T) {
	for _, sleeps := range []bool{false, true} {
		n := neighbours{sleeps: sleeps}
		expect := func(when string, took time.Duration, times int, pause uint32) {
			t.Helper()
			for range times {
				n.yielded(took)
			}
			if n.pause != pause || n.left != pause {
				t.Errorf("%s, sleeps %v: a yield after %d rounds, want %d", when, sleeps, n.pause, pause)
			}
		}
		first, many := uint32(0), uint32(0)
		if sleeps {
			first, many = wary, mostWary
		}
		expect("alone", nobody/2, 20, rarely)
		expect("beside others", nobody, 1, 0)
		expect("beside a thread that computes", willing, 1, first)
		expect("beside threads that compute", willing, 20, many)
		expect("beside others again", willing/2, 1, 0)
		expect("beside a thread that computes", willing, 1, first)
		expect("alone again", nobody/2, 20, rarely)
	}
}

// TestNeighboursIdle counts the rounds between yields.
func TestNeighboursIdle(t *testing.T) {
	n := neighbours{pause: 5, left: 3}
	for range 3 {
		if n.idle() {
			t.Error("others had the CPU before the yield")
		}
	}
	if n.left != 0 || n.pause != 5 {
		t.Fatalf("before the yield: %+v", n)
	}
	if shared := n.idle(); shared != (n.pause == 0) || n.left != n.pause || n.pause == 5 {
		t.Errorf("after the yield: others had the CPU: %v, %+v", shared, n)
	}
	if a := testing.AllocsPerRun(1000, func() { n.idle() }); a != 0 {
		t.Errorf("%v allocations a round", a)
	}
}

func BenchmarkNeighbours(b *testing.B) {
	var n neighbours
	for b.Loop() {
		n.idle()
	}
}
