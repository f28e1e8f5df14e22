// SPDX-License-Identifier: Apache-2.0

package mr

import "sync/atomic"

// Tally is how many operations of peers were applied to a region, which returned what
// they found or did not, and the bytes that each kind reached.
type Tally struct{ Reads, Writes, BytesRead, BytesWritten uint64 }

// tally is a Tally that several pollers add to. It has cache lines of its own, since
// lookups read the rest of a region.
type tally struct {
	_                                      [64]byte
	reads, writes, bytesRead, bytesWritten atomic.Uint64
	_                                      [32]byte
}

// Tally returns what pollers have applied to the region since it was registered, up to
// the last burst of packets. Any goroutine may call it.
func (r *Region) Tally() Tally {
	t := &r.applied
	return Tally{t.reads.Load(), t.writes.Load(), t.bytesRead.Load(), t.bytesWritten.Load()}
}

// AddTally adds what was applied to the region. Pollers call it, once for many
// operations.
func (r *Region) AddTally(t Tally) {
	for _, x := range [...]struct {
		n  uint64
		to *atomic.Uint64
	}{{t.Reads, &r.applied.reads}, {t.Writes, &r.applied.writes}, {t.BytesRead, &r.applied.bytesRead},
		{t.BytesWritten, &r.applied.bytesWritten}} {
		if x.n > 0 {
			x.to.Add(x.n)
		}
	}
}
