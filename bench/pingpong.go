// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// A virtual machine's two cores are near to each other or far, as the host places them,
// and that changes within a fifth of a second. A cache line takes some 25 to 60 ns from
// one core to the other when they are near, and 250 to 300 when they are far. The ratio
// to the floor depends on it: near cores speed up the floor more than anything that has a
// working set. So a ping-pong of a cache line before and after each sample tells the
// state of the cores.

const (
	pingTime  = 5 * time.Millisecond
	pingBatch = 64 // round trips between two looks at the clock, which takes as long as one of them
	// pingPatience bounds the wait for the other core, which may have to finish something
	// else first.
	pingPatience = time.Second
	nearLimit    = 100 // ns; between the levels that were seen
)

// cacheLine is a word with cache lines of its own: processors fetch lines by pairs.
type cacheLine struct {
	_    [128]byte
	word atomic.Uint64
	_    [120]byte
}

// rally is a ping-pong: a number that goes there, and comes back.
type rally struct {
	there, back cacheLine
	end         time.Time // when both sides end, whatever the other one does
}

const gameOver = ^uint64(0) // goes there last

// crossing returns the time that a cache line takes from one core to another, in ns: the
// median of batches, so that a few interruptions do not count. It is 0 if the two threads
// never ran at the same time.
func crossing(a, b int, d time.Duration) (ns float64, err error) {
	r := &rally{end: time.Now().Add(d + pingPatience)}
	ended := make(chan error, 2)
	go func() { ended <- onCore(b, r.answer) }()
	go func() { ended <- onCore(a, func() { ns = r.serve(d) }) }()
	for range 2 {
		if e := <-ended; e != nil {
			err = e
		}
	}
	return ns, err
}

// onCore runs f on a thread that is pinned to a core and has the priority of contestants.
// The thread gets back what it had and lives on: it may have started contestants, which
// end with it.
func onCore(core int, f func()) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("pinning to core %d: %w", core, err)
	}
	restore := raise()
	f()
	restore()
	return unix.SchedSetaffinity(0, &before)
}

// answer sends back what has come.
func (r *rally) answer() {
	last := uint64(0)
	for spins := 1; spins%(1<<16) != 0 || time.Now().Before(r.end); spins++ {
		switch v := r.there.word.Load(); v {
		case last:
		case gameOver:
			return
		default:
			r.back.word.Store(v)
			last = v
		}
	}
}

// serve plays for a time, and returns half of a round trip's time, in ns.
func (r *rally) serve(d time.Duration) float64 {
	defer r.there.word.Store(gameOver)
	if !r.play(1) { // the other side may only just have started
		return 0
	}
	var batches []float64
	n, begun := uint64(1), time.Now()
	for start, now := begun, begun; now.Sub(begun) < d; start = now {
		for range pingBatch {
			n++
			if !r.play(n) {
				return median(batches)
			}
		}
		now = time.Now()
		batches = append(batches, float64(now.Sub(start))/(2*pingBatch))
	}
	return median(batches)
}

// play sends a number there, and reports whether it has come back in time.
func (r *rally) play(n uint64) bool {
	r.there.word.Store(n)
	for spins := 1; r.back.word.Load() != n; spins++ {
		if spins%(1<<16) == 0 && !time.Now().Before(r.end) {
			return false
		}
	}
	return true
}
