// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/matching"
)

// receipts are the deferred receives of a domain that are due. A counter may reach a
// threshold while a queue of receives is locked, so the mover leaves them here,
// and the engines' threads post them, when they hold no lock.
//
// The order of the locks is: receipts.mu, that of a queue of receives, triggers.mu.
type receipts struct {
	mu   sync.Mutex // held while some are posted, so that they are in their order
	any  atomic.Bool
	list []*deferred // under triggers.mu
}

// start leaves a receive that has become due for an engine. triggers.mu is held.
func (r *receipts) start(w *deferred) {
	w.started = true
	r.list = append(r.list, w)
	r.any.Store(true)
	w.ep.stepper.Eng.Room()
}

// startReceives posts the receives that are due; none of them is left when it returns.
// The caller holds no lock of a queue of receives or of the triggers.
func (t *triggers) startReceives() {
	r := &t.receipts
	r.mu.Lock()
	defer r.mu.Unlock()
	r.any.Store(false) // before looking: adding one sets it afterwards
	t.mu.Lock()
	due := r.list
	r.list = nil
	t.mu.Unlock()
	for _, w := range due {
		if q := w.ep.receiveQueue.queue; q.Post(w.recv) != nil { // it has what it needs, so the queue is closed
			q.CancelReserved(w.recv)
		}
	}
}

// received counts the end of a deferred receive. The queue of receives is locked.
func (w *deferred) received(d *matching.Done) {
	if w.done == nil || w.recv.Multi && !d.Released {
		return
	}
	if w.started {
		t := &w.ep.dom.triggers
		t.mu.Lock()
		w.done.works--
		t.mu.Unlock()
	}
	if d.Reason == matching.Received {
		w.done.succeeded(1, d.Received)
	} else {
		w.done.count(0, 1)
	}
}

// admitReceipt returns an error if the endpoint takes no more deferred receives in.
// triggers.mu is held.
func (ep *endpoint) admitReceipt() error {
	if ep.deferral.closed {
		return ep.unready()
	}
	return nil
}

func (x RecvWork) queue(d *Domain, w *Work) error {
	if err := d.checkWork(x.Endpoint, nil); err != nil {
		return err
	}
	in, err := x.Endpoint.usableQueue()
	if err != nil {
		return err
	}
	flags := x.Flags
	if flags&FlagDefaults != 0 {
		flags = flags&^FlagDefaults | in.flags
	}
	if found := flags & (FlagPeek | FlagClaim | FlagDiscard); found != 0 {
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: deferred work: flags of a receive %v: whoever looks at messages does so now: want "+
				"none of them", found)
	}
	r := &matching.Receive{}
	if err := in.describe(r, x.Receive, flags, x.Tagged); err != nil {
		return err
	}
	r.Buffers, r.Reserved = slices.Clone(r.Buffers), true
	work := &deferred{at: w.When, done: w.Completion, known: w, ep: x.Endpoint.endpoint, recv: r}
	r.Note = work
	for _, c := range work.counters() {
		c.owner.CompareAndSwap(nil, x.Endpoint.stepper)
	}
	if err := in.posted(in.queue.Reserve(r)); err != nil {
		return err
	}
	err = d.triggers.add(work)
	if err != nil {
		in.queue.Unreserve()
	}
	return err
}
