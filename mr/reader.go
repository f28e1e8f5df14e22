// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"
)

// Reader is one poller's access to the table. It belongs to one goroutine at a time.
//
// Its state is a counter that is odd between Enter and Exit. Memory order: Go's atomics
// are sequentially consistent, so the store of Enter comes before all look-ups that
// follow it, and the removal of a region from the index before the loads of the counters
// that Region.Close waits on. Hence a Close that sees a counter even, or changed, knows
// that this Reader has either left since, or will no longer find the region.
type Reader struct {
	_     [64]byte // a poller's counter shares its cache line with nothing else
	state atomic.Uint64
	next  uint64 // state after the next step; the owner's copy, so that Enter and Exit are one store each
	table *Table
	_     [40]byte
}

// NewReader adds a reader. Close it when its poller ends.
func (t *Table) NewReader() *Reader {
	r := &Reader{table: t, next: 1}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readers[r] = struct{}{}
	return r
}

// Enter begins a burst. It must be followed by Exit before the next Enter; while inside,
// the goroutine must not block on Region.Close, which would wait for itself.
func (r *Reader) Enter() {
	r.state.Store(r.next)
	r.next++
}

// Exit ends the burst: regions found in it must not be used from then on.
func (r *Reader) Exit() {
	r.state.Store(r.next)
	r.next++
}

// Lookup returns the region of that key, or nil. Call it between Enter and Exit.
func (r *Reader) Lookup(key uint64) *Region { return r.table.index.Load().find(key) }

// Close removes the reader from the table; it counts as outside. Closing again
// does nothing.
func (r *Reader) Close() {
	if r.next&1 == 0 {
		r.Exit()
	}
	r.table.mu.Lock()
	defer r.table.mu.Unlock()
	delete(r.table.readers, r)
}

// inside is a reader that was in a burst when a region was removed, and its state at that
// time.
type inside struct {
	reader *Reader
	state  uint64
}

// gone reports whether the reader has left that burst.
func (i inside) gone() bool { return i.reader.state.Load() != i.state }

// quiesce waits until all of the readers have left the bursts in which they were
// seen.
func quiesce(ctx context.Context, busy []inside) error {
	// A burst takes microseconds, unless its thread lost the processor.
	for spins, pause := 0, 20*time.Microsecond; ; spins++ {
		for len(busy) > 0 && busy[0].gone() {
			busy = busy[1:]
		}
		if len(busy) == 0 {
			return nil
		}
		if spins < 100 {
			runtime.Gosched()
			continue
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
			pause = min(2*pause, time.Millisecond)
		}
	}
}
