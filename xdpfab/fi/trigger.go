// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/matching"
)

// Threshold is when deferred work starts: as soon as the value of the counter is Value or
// more, whether operations or the caller's Add and Set have moved it
// (FI_TRIGGER_THRESHOLD of fi_trigger(3)). Failures that the counter counts start
// nothing.
//
// Whatever waits for one counter starts in the order of the thresholds, and with the same
// threshold in the order in which it came. It starts once, on the goroutine or thread
// that moves the counter, or on the caller's if the counter has the value already.
type Threshold struct {
	Counter *Counter
	Value   uint64
}

// deferred is work that waits for a counter: an operation or a receive of an endpoint, or
// a change of another counter.
type deferred struct {
	at    Threshold
	order uint64   // in which it came, among all of the domain
	done  *Counter // counts how it ends; may be nil
	known *Work    // as which the caller knows it; nil for an operation posted with Msg.Trigger

	ep      *endpoint // whose operation or receive it is; nil for a change
	op      engine.Submission
	recv    *matching.Receive // of a receive; see receipts
	started bool              // of a receive: it was not cancelled
	change  CounterWork
}

// triggers is all work of a domain that waits for counters. The thread that moves a
// counter compares the new value with the lowest threshold of the counter, and only takes
// the lock when that is reached. The adder of work sets that threshold first, and then
// looks at the value. One of the two sees the other.
//
// The lock may be taken by engines' threads, so no thread waits for an engine with it.
type triggers struct {
	mu       sync.Mutex
	closed   bool // with the domain
	came     uint64
	changes  int                   // of counters that wait
	counters map[*Counter]struct{} // that something waits for
	known    map[*Work]*deferred   // that wait
	moved    []*Counter            // scratch of start
	receipts receipts
}

// maxChanges is the most changes of counters that may wait in a domain.
const maxChanges = 1 << 16

// add takes work in, or starts it if it is due.
func (t *triggers) add(w *deferred) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.admit(w); err != nil {
		return err
	}
	for _, c := range w.counters() {
		c.works++
	}
	if t.counters == nil {
		t.counters, t.known = map[*Counter]struct{}{}, map[*Work]*deferred{}
	}
	if w.known != nil {
		t.known[w.known] = w
	}
	t.came++
	w.order = t.came
	c := w.at.Counter
	heap.Push(&c.waiting, w)
	t.setDue(c)
	if c.value.Load() >= c.due.Load() {
		t.start(c)
	}
	return nil
}

// admit returns an error if work cannot be taken in; otherwise it has a place. t.mu is
// held.
func (t *triggers) admit(w *deferred) error {
	for _, c := range w.counters() {
		if err := c.ended(); err != nil {
			return err
		}
	}
	switch {
	case t.closed:
		return w.at.Counter.dom.errClosed("deferred work", anew)
	case w.known != nil && t.known[w.known] != nil:
		return errno.Refuse(ErrBusy,
			"xdpfab: the work is queued already: wait until it has started, or queue another Work")
	case w.recv != nil:
		return w.ep.admitReceipt()
	case w.ep != nil:
		return w.ep.admitDeferred()
	case t.changes == maxChanges:
		return ErrAgain
	}
	t.changes++
	return nil
}

// fire starts what is due at a counter that has moved. Any thread.
func (t *triggers) fire(c *Counter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.start(c)
}

// start is fire with t.mu held. What starts may move other counters, and so start more,
// which comes to an end because everything starts once.
func (t *triggers) start(c *Counter) {
	moved := append(t.moved[:0], c)
	for i := 0; i < len(moved); i++ {
		for c := moved[i]; len(c.waiting) > 0 && c.value.Load() >= c.waiting[0].at.Value; {
			w := heap.Pop(&c.waiting).(*deferred)
			t.setDue(c)
			c.works--
			delete(t.known, w.known)
			if w.recv != nil {
				t.receipts.start(w)
				continue
			}
			if w.ep != nil {
				w.submit()
				continue
			}
			t.changes--
			moved = append(moved, w.apply()...)
		}
	}
	clear(moved)
	t.moved = moved[:0]
}

// apply changes the counter, counts that in another one, and returns those that have
// moved. t.mu is held.
func (w *deferred) apply() []*Counter {
	c := w.change.Counter
	c.works--
	if w.change.Set {
		c.value.Store(w.change.Value)
	} else {
		c.value.Add(w.change.Value)
	}
	c.notify()
	if w.done == nil {
		return []*Counter{c}
	}
	w.done.works--
	w.done.value.Add(1)
	w.done.notify()
	return []*Counter{c, w.done}
}

// endpoints returns those that have operations for which match is true. t.mu is held.
func (t *triggers) endpoints(match func(*deferred) bool) map[*endpoint]bool {
	all := map[*endpoint]bool{}
	for c := range t.counters {
		for _, w := range c.waiting {
			if w.ep != nil && match(w) {
				all[w.ep] = true
			}
		}
	}
	return all
}

// take takes out all work for which match is true, in the order in which it came, and
// leaves it to the caller to end it. t.mu is held.
func (t *triggers) take(match func(*deferred) bool) (out []*deferred) {
	for c := range t.counters {
		kept := c.waiting[:0]
		for _, w := range c.waiting {
			if match(w) {
				out = append(out, w)
			} else {
				kept = append(kept, w)
			}
		}
		clear(c.waiting[len(kept):])
		c.waiting = kept
		heap.Init(&c.waiting)
		t.setDue(c)
	}
	for _, w := range out {
		for _, c := range w.counters() {
			c.works--
		}
		delete(t.known, w.known)
		switch {
		case w.recv != nil:
		case w.ep != nil:
			w.ep.deferral.held--
		default:
			t.changes--
		}
	}
	slices.SortFunc(out, func(a, b *deferred) int { return cmp.Compare(a.order, b.order) })
	return out
}

// counters returns those that have to stay open for the work to be done: an entry
// for each time that it needs them.
func (w *deferred) counters() []*Counter {
	list := []*Counter{w.at.Counter}
	if w.change.Counter != nil {
		list = append(list, w.change.Counter)
	}
	if w.done != nil {
		list = append(list, w.done)
	}
	return list
}

// setDue records the lowest threshold. The greatest number stands for none: to reach it
// costs a look at nothing. t.mu is held.
func (t *triggers) setDue(c *Counter) {
	if len(c.waiting) == 0 {
		delete(t.counters, c)
		c.due.Store(math.MaxUint64)
		return
	}
	t.counters[c] = struct{}{}
	c.due.Store(c.waiting[0].at.Value)
}

// waiting is the work that waits for one counter, what comes first at the front.
type waiting []*deferred

func (q waiting) Len() int { return len(q) }
func (q waiting) Less(i, j int) bool {
	if q[i].at.Value != q[j].at.Value {
		return q[i].at.Value < q[j].at.Value
	}
	return q[i].order < q[j].order
}
func (q waiting) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *waiting) Push(w any)   { *q = append(*q, w.(*deferred)) }
func (q *waiting) Pop() any {
	last := len(*q) - 1
	w := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return w
}
