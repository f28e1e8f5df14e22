// SPDX-License-Identifier: Apache-2.0

package mr

import "sync/atomic"

// Watcher learns when peers may have changed a region.
type Watcher interface {
	// Changed is called after operations of peers have been applied, once for a burst of
	// them, and by Region.Changed. Any thread may call it, several at the same time, and
	// it must not block.
	Changed()
	// Closed is called once, when the region is deregistered: its memory may be gone as
	// soon as it returns.
	Closed()
}

// Watch gives the region a watcher, which it keeps until it is closed. It returns false
// if the region has one already, or is closed.
func (r *Region) Watch(w Watcher) bool {
	if !r.applied.watcher.CompareAndSwap(nil, &w) {
		return false
	}
	return !r.closed.Load() || !r.applied.watcher.CompareAndSwap(&w, nil)
}

// Closed reports whether the region was deregistered.
func (r *Region) Closed() bool { return r.none() || r.closed.Load() }

// Watcher returns the watcher, or nil.
func (r *Region) Watcher() Watcher {
	if w := r.applied.watcher.Load(); w != nil {
		return *w
	}
	return nil
}

// Changed wakes those who wait for words of the region, if what they wait for is there.
// The owner calls it after it has changed the memory itself, by [Region.Uint64] or by
// Bytes: the region does not notice that.
func (r *Region) Changed() {
	if r == nil {
		return
	}
	if w := r.applied.queues.Load(); w != nil {
		(*w).Changed()
	}
	if w := r.applied.watcher.Load(); w != nil {
		(*w).Changed()
	}
}

// SetQueues is Watch for the one watcher that has the operations of peers which wait for
// words of the region: it is told first.
func (r *Region) SetQueues(w Watcher) bool {
	if !r.applied.queues.CompareAndSwap(nil, &w) {
		return false
	}
	return !r.closed.Load() || !r.applied.queues.CompareAndSwap(&w, nil)
}

// Queues returns the watcher of SetQueues, or nil.
func (r *Region) Queues() Watcher {
	if w := r.applied.queues.Load(); w != nil {
		return *w
	}
	return nil
}

// notifyUnwatched tells the watcher that the region is closed.
func (r *Region) notifyUnwatched() {
	for _, at := range []*atomic.Pointer[Watcher]{&r.applied.queues, &r.applied.watcher} {
		if w := at.Swap(nil); w != nil {
			(*w).Closed()
		}
	}
}
