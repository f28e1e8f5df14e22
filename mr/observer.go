// SPDX-License-Identifier: Apache-2.0

package mr

// Observer learns what peers do to a region (FI_RMA_EVENT in fi_mr(3)).
type Observer interface {
	// Touched is called when operations of peers have been applied. reads is how many
	// returned the values before, writes how many did not; the bytes are those that each
	// kind has reached. An array that comes in several frames is counted with the last
	// one, and its bytes with each. Pollers call it, maybe several at the same time, and
	// it must not block.
	Touched(reads, writes, bytesRead, bytesWritten int)
	// Closed is called once, when the region is deregistered and no operation is in
	// flight on it.
	Closed()
}

// Observe gives the region an observer, which it keeps until it is closed. It returns
// false if the region has one already, or is closed.
func (r *Region) Observe(o Observer) bool {
	if !r.observer.CompareAndSwap(nil, &o) {
		return false
	}
	if r.closed.Load() && r.observer.CompareAndSwap(&o, nil) {
		return false
	}
	return true
}

// Observer returns the observer, or nil.
func (r *Region) Observer() Observer {
	if o := r.observer.Load(); o != nil {
		return *o
	}
	return nil
}

// notifyClosed tells the observer that the region is closed.
func (r *Region) notifyClosed() {
	if o := r.observer.Swap(nil); o != nil {
		(*o).Closed()
	}
}
