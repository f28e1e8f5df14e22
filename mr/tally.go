// SPDX-License-Identifier: Apache-2.0

package mr

import "sync/atomic"

// Tally is how many operations of peers were applied to a region, and the bytes that they
// reached. Fetching ones returned what they found: reads, fetch-adds, swaps. The others
// returned nothing: writes, additions without a result.
type Tally struct{ Fetching, NonFetching, FetchingBytes, NonFetchingBytes uint64 }

// tally is a Tally that several pollers add to. It has cache lines of its own, since
// lookups read the rest of a region. Whoever adds looks at the watcher, too.
type tally struct {
	_                                      [64]byte
	reads, writes, bytesRead, bytesWritten atomic.Uint64
	watcher, queues                        atomic.Pointer[Watcher]
	_                                      [16]byte
}

// Tally returns what pollers have applied to the region since it was registered, up to
// the last burst of packets. Any goroutine may call it.
func (r *Region) Tally() Tally {
	if r == nil {
		return Tally{}
	}
	t := &r.applied
	return Tally{t.reads.Load(), t.writes.Load(), t.bytesRead.Load(), t.bytesWritten.Load()}
}

// AddTally adds what was applied to the region, and tells its watcher. Pollers call it,
// once for many operations. The sums come first: adding is a full barrier, so that what
// the operations have changed can be seen by whoever the look at the watcher misses.
func (r *Region) AddTally(t Tally) {
	r.Count(t)
	r.Changed()
}

// Count is AddTally by one who tells the watcher otherwise.
func (r *Region) Count(t Tally) {
	for _, x := range [...]struct {
		n  uint64
		to *atomic.Uint64
	}{{t.Fetching, &r.applied.reads}, {t.NonFetching, &r.applied.writes}, {t.FetchingBytes, &r.applied.bytesRead},
		{t.NonFetchingBytes, &r.applied.bytesWritten}} {
		if x.n > 0 {
			x.to.Add(x.n)
		}
	}
}
