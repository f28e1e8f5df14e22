// SPDX-License-Identifier: Apache-2.0

package atomic

import (
	"runtime"
	"sync/atomic"
)

// A lock for every 16 bytes of a page. Most elements that need a lock start at
// a multiple of 16; others share the lock of a neighbour, which does no harm.
const (
	lockPage    = 4096 // bytes; the smallest page, so mappings agree on offsets in it
	lockWidth   = 16
	lockStripes = lockPage / lockWidth
)

// spinLock is a test-and-set lock alone on its cache line. It is held for a few
// loads and stores only.
type spinLock struct {
	held atomic.Uint32
	_    [60]byte
}

var locks [lockStripes]spinLock

// lockOf returns the lock of the element at addr. Only the offset in the page
// counts, so that two mappings of the same bytes share it.
func lockOf(addr uintptr) *spinLock { return &locks[addr%lockPage/lockWidth] }

// spinsBeforeYield bounds the wait for a running holder; past it, the holder
// has probably been descheduled, and needs a processor to finish.
const spinsBeforeYield = 64

func (l *spinLock) lock() {
	for spins := 0; !l.held.CompareAndSwap(0, 1); spins++ {
		for l.held.Load() != 0 {
			if spins++; spins >= spinsBeforeYield {
				runtime.Gosched()
				spins = 0
			}
		}
	}
}

func (l *spinLock) unlock() { l.held.Store(0) }
