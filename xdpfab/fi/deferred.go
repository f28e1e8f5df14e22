// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// deferral is the part of an endpoint for operations that wait for a counter. They have a
// submission ring of their own, so that an operation that starts finds an entry on
// whatever thread: as many are taken in as the ring has entries.
type deferral struct {
	ring   *engine.Ring // made at first use; under the endpoint's mu until then
	held   int          // operations that wait or have started, and have not completed; under triggers.mu
	closed bool         // with the endpoint; under triggers.mu
}

// admitDeferred counts an operation in. triggers.mu is held.
func (ep *endpoint) admitDeferred() error {
	switch d := &ep.deferral; {
	case d.closed:
		return ep.unready()
	case d.held == d.ring.Size():
		return ErrAgain
	}
	ep.deferral.held++
	return nil
}

// needRing makes the ring for deferred operations, if there is none yet.
func (ep *endpoint) needRing() error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	switch {
	case !ep.ready():
		return ep.unready()
	case ep.deferral.ring != nil:
		return nil
	}
	r, err := engine.NewRing(ep.attr.Size, (*deferredSink)(ep))
	if err != nil {
		return fmt.Errorf("xdpfab: endpoint: %w", err)
	}
	ep.stepper.Call(func() { ep.stepper.Eng.AddRing(r, ep.origin) })
	ep.deferral.ring = r
	return nil
}

// rings returns the submission rings of the endpoint. ep.mu is held, or operations can no
// longer be posted.
func (ep *endpoint) rings() []*engine.Ring {
	if ep.deferral.ring == nil {
		return []*engine.Ring{ep.ring}
	}
	return []*engine.Ring{ep.ring, ep.deferral.ring}
}

// postpone takes in an operation that was checked, until its counter has reached the
// threshold.
func (ep *endpoint) postpone(verb wire.Verb, m *Msg, flags OpFlags, cookie uint64, peer engine.PeerID,
	count uint32) error {
	if err := ep.dom.checkThreshold(m.Trigger); err != nil {
		return err
	}
	if err := ep.needRing(); err != nil {
		return err
	}
	w := &deferred{at: *m.Trigger, ep: ep, known: m.work}
	if m.work != nil {
		w.done = m.work.Completion
	}
	m.describe(&w.op, verb, peer, cookie, count)
	m.fill(&w.op, flags)
	for _, c := range w.counters() {
		c.owner.CompareAndSwap(nil, ep.stepper)
	}
	if err := ep.reserve(cookie); err != nil {
		return err
	}
	err := ep.dom.triggers.add(w)
	if err != nil {
		ep.unreserve(cookie)
	}
	return err
}

// checkThreshold returns an error for one that work of the domain cannot wait for.
func (d *Domain) checkThreshold(at *Threshold) error {
	if at.Counter == nil || at.Counter.dom != d {
		return errno.Refuse(ErrForeign,
			"xdpfab: threshold %d: the counter is nil, or of another domain: want one of domain %s", at.Value,
			d.label())
	}
	return nil
}

// submit starts the operation. triggers.mu is held, so operations start in their order.
func (w *deferred) submit() {
	s := w.ep.deferral.ring.Claim() // has an entry: see deferral
	s.Entry, s.Outside, s.Context, s.Result = w.op.Entry, w.op.Outside, w, w.op.Result
	s.Publish()
	w.ep.stepper.Notify()
}

// deferredSink is the endpoint as the engine knows it from the ring of deferred
// operations.
type deferredSink endpoint

// Complete implements the engine's Sink. The place of the operation is free again before
// anyone can know of its end.
func (e *deferredSink) Complete(s *engine.Submission, c *engine.Completion, later *engine.Later) {
	ep, w := (*endpoint)(e), s.Context.(*deferred)
	t := &ep.dom.triggers
	t.mu.Lock()
	ep.deferral.held--
	if w.done != nil {
		w.done.works--
	}
	t.mu.Unlock()
	w.op.Context, s.Context = nil, w.op.Context
	w.tell(s, c, later)
}

// tell has the completion queue and the counters tell the end of the operation. Engine's
// thread.
func (w *deferred) tell(s *engine.Submission, c *engine.Completion, later *engine.Later) {
	(*sink)(w.ep).Complete(s, c, later)
	if w.done == nil {
		return
	}
	if c.Outcome == engine.Success {
		w.done.succeeded(1, c.Length)
	} else {
		w.done.count(0, 1)
	}
}

// Succeed implements the engine's Sink.
func (e *deferredSink) Succeed(done []*engine.Submission, c *engine.Completion) {
	for _, s := range done {
		c.Cookie, c.Source = s.Cookie, s.Peer
		e.Complete(s, c, nil)
	}
}

// Follow implements the engine's Sink. Only direct posts follow others, and no deferred
// operation is one.
func (e *deferredSink) Follow(s *engine.Submission, done []engine.Follower, c *engine.Completion) {
	for i := range done {
		s.Context = done[i].Context
		e.Complete(s, c, nil)
	}
}

// Flush implements the engine's Sink.
func (e *deferredSink) Flush() { (*sink)(e).Flush() }

// cancelOperations ends operations of the endpoint that were taken out, and never
// start. Engine's thread.
func (ep *endpoint) cancelOperations(list []*deferred) {
	for _, w := range list {
		if w.recv != nil {
			ep.receiveQueue.queue.CancelReserved(w.recv)
			continue
		}
		c := engine.Completion{Cookie: w.op.Cookie, Source: w.op.Peer, Outcome: engine.NotExecuted,
			Reason: session.Cancelled, Flags: w.op.Completed()}
		w.tell(&w.op, &c, nil)
	}
	(*sink)(ep).Flush()
}

// endDeferral takes no more deferred operations in, and takes out those that wait.
func (ep *endpoint) endDeferral() []*deferred {
	t := &ep.dom.triggers
	t.mu.Lock()
	defer t.mu.Unlock()
	ep.deferral.closed = true
	return t.take(func(w *deferred) bool { return w.ep == ep })
}
