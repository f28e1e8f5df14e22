// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"sync"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// failures are the entries of operations that took no place in their completion queue,
// since their success would have made none: those that failed, in their order. No
// such operation is accepted while as many failures as the queue has places are unread,
// so that the list is never longer than that and the operations in flight together. It
// grows as failures come: each of them allocates its error in any case.
type failures struct {
	shown gauge[int64] // entries that can be read; the engine adds, the reader subtracts
	fresh int64        // entries that are not shown yet; engine's thread

	mu   sync.Mutex
	list []failure
}

// failure is the entry of one operation.
type failure struct {
	after uint64 // the entries of the queue that were written before it
	entry entry
	pointers
}

// pushFailure writes the entry of an operation that failed and has no place. Engine's
// thread.
func (q *CompletionQueue) pushFailure(ep *endpoint, context any, c *engine.Completion, err *OpError) {
	f := &q.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, failure{q.written, entryOf(c), pointers{context, ep, err}})
	f.fresh++
}

// show lets the reader see the failures that were written, and reports whether there
// are any. The tail of the queue is moved afterwards, so that a reader that finds the
// entries behind a failure finds the failure. Engine's thread.
func (f *failures) show() bool {
	if f.fresh == 0 {
		return false
	}
	f.shown.Add(f.fresh)
	f.fresh = 0
	return true
}

// beforeFailure returns how many of n entries of the queue, from head on, come before the
// first failure. There is one. A failure that is shown a moment before entries that
// preceded it does not wait for them. The reader.
func (q *CompletionQueue) beforeFailure(head uint64, n int) int {
	f := &q.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(0, min(n, int(f.list[0].after-head)))
}

// takeFailure moves the first failure, which there is, out of the list. The reader.
func (q *CompletionQueue) takeFailure() (c Completion) {
	f := &q.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	x := &f.list[0]
	c.set(&x.entry, &x.pointers)
	c.Err = x.err
	*x = failure{}
	if f.list = f.list[1:]; len(f.list) == 0 {
		f.list = nil
	}
	f.shown.Add(-1)
	return c
}

// ReadErr takes the error completion that is next (fi_cq_readerr). ok is false when the
// next one is no error completion, or there is none: Read says whether the queue is
// closed.
func (q *CompletionQueue) ReadErr() (c Completion, ok bool) {
	if !q.enter() {
		return c, false
	}
	defer q.leave()
	if c, ok = q.readOwnErr(); !ok {
		if a := q.arrivals.Load(); a != nil {
			c, ok = a.readErr()
			q.receives.freed(1)
		}
	}
	return c, ok
}

// readOwnErr is ReadErr for the operations that the endpoints of the queue have posted.
func (q *CompletionQueue) readOwnErr() (c Completion, ok bool) {
	head := q.head.Load()
	unread := int(q.tail.Load() - head)
	if q.failures.shown.Load() > 0 && q.beforeFailure(head, unread) == 0 {
		return q.takeFailure(), true
	}
	if unread == 0 {
		return c, false
	}
	err := q.pointers[head&q.mask].err
	if err == nil {
		return c, false
	}
	q.take(&c, head&q.mask)
	c.Err, q.pointers[head&q.mask].err = err, nil
	q.consume(head, 1)
	return c, true
}
