// SPDX-License-Identifier: Apache-2.0

package matching

// A receive can be reserved, to be posted when its time has come: then it lacks nothing.

// provide takes a place in the sink for a receive to be posted, and reports whether there
// is one, and a node.
func (q *Queue) provide() bool {
	if q.receives.n <= q.reserved || !q.cfg.Sink.Take() {
		return false
	}
	q.places++
	return true
}

// Reserve takes what Post needs for a receive. Exactly one of these follows: Post with
// Receive.Reserved, CancelReserved, Unreserve. Nothing has changed if there is an error:
// ErrFull, ErrClosed, ErrMulti. A claim cannot be reserved.
func (q *Queue) Reserve(r *Receive) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case r.Multi && !r.fitsMany():
		return ErrMulti
	case !q.provide():
		return ErrFull
	}
	q.reserved++
	return nil
}

// Unreserve gives back what a receive has reserved, which will never be posted.
func (q *Queue) Unreserve() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved--
	q.returnPlace()
	q.catchUp() // a multi-receive may wait for that place
	q.makeRoom()
}

// CancelReserved completes a reserved receive as cancelled. The queue may be closed.
func (q *Queue) CancelReserved(r *Receive) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.reserved--
	q.done = Done{Context: r.Context, Note: r.Note, Reason: Cancelled, Tagged: r.Tagged, Released: r.Multi}
	q.deliver()
}
