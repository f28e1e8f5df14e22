// SPDX-License-Identifier: Apache-2.0

package progress

import "time"

// neighbours decides when a thread that finds nothing to do lets others have its CPU. The
// work that it waits for may need that CPU: where the pollers of daemons and the programs
// that use them outnumber the CPUs, each waits for the others to have their turn, and a
// thread that spins keeps them waiting for a time slice, some milliseconds. So it gives
// its CPU away at times, and measures how long that takes: the duration shows whether
// others wanted the CPU. Only the thread that has the turn uses it.
type neighbours struct {
	sleeps bool   // this thread sleeps when it has been idle for long
	pause  uint32 // rounds without work between two yields
	left   uint32 // of these, until the next one
}

// The duration of sched_yield(2) shows who had the CPU: nobody, threads that give it back
// as soon as they find nothing to do, or one that computes.
const (
	nobody  = 1500 * time.Nanosecond
	willing = 200 * time.Microsecond
	// rarely is the most rounds between yields while nobody else wants the CPU. They take
	// a few per cent of an idle thread's time.
	rarely = 1024
	// wary is the number of rounds without a yield after one to a thread that computes,
	// and mostWary the number after many: about a thousand sleeps, so that a poller whose
	// neighbour no longer computes notices within a second.
	wary     = 1 << 12
	mostWary = 1 << 20
)

// idle is called after each round that had nothing to do. It reports whether others had
// the CPU just now.
func (n *neighbours) idle() bool {
	if n.left > 0 {
		n.left--
		return false
	}
	before := time.Now()
	yieldCPU()
	took := time.Since(before)
	n.yielded(took)
	return took >= nobody
}

// yielded sets the pause after a yield that took so long. A thread that computes keeps
// the CPU for a time slice. So a thread that sleeps goes to sleep next to it without a
// yield: the kernel lets a thread that has slept have the CPU at once when work comes,
// but not one that has yielded. A thread that never sleeps would seem to compute to the
// others if it did not yield.
func (n *neighbours) yielded(took time.Duration) {
	switch {
	case took < nobody:
		n.pause = min(2*n.pause+1, rarely)
	case took < willing || !n.sleeps:
		n.pause = 0
	default:
		n.pause = min(max(2*n.pause, wary), mostWary)
	}
	n.left = n.pause
}
