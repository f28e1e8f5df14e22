// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	syncatomic "sync/atomic"
	"syscall"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Work is something to be done when a counter reaches a threshold (struct
// fi_deferred_work). Chains of it, in which the completion of one moves the counter that
// another waits for, run without the caller.
type Work struct {
	When Threshold
	Do   Deferrable
	// Completion counts how the work ends, whether it succeeds or fails; it may be nil.
	// The counters and the completion queue of the endpoint tell of an operation besides.
	Completion *Counter
}

// Deferrable is what Work can do: an AtomicWork, an RMAWork, a SendWork, a RecvWork or a
// CounterWork.
type Deferrable interface {
	// queue checks the work and takes it in.
	queue(d *Domain, w *Work) error
}

// AtomicWork posts an operation (FI_OP_ATOMIC, FI_OP_FETCH_ATOMIC, FI_OP_COMPARE_ATOMIC):
// Base, Fetch or Compare, by Endpoint.Atomic, FetchAtomic or CompareAtomic.
type AtomicWork struct {
	Endpoint *Endpoint
	Func     atomic.Func
	Msg      *Msg // without a Trigger of its own
	Flags    OpFlags
}

// RMAWork posts a remote read or write, by Endpoint.Read or Endpoint.Write (FI_OP_READ,
// FI_OP_WRITE).
type RMAWork struct {
	Endpoint *Endpoint
	Op       atomic.Op // Read or Write
	RMA      *RMA      // without a Trigger of its own
	Flags    OpFlags
}

// SendWork posts a message, by Endpoint.Send, or Endpoint.SendTagged with Tagged
// (FI_OP_SEND, FI_OP_TSEND).
type SendWork struct {
	Endpoint *Endpoint
	Message  *Message // without a Trigger of its own
	Tagged   bool
	Flags    OpFlags
}

// RecvWork posts a receive, by Endpoint.Receive, or Endpoint.ReceiveTagged with Tagged
// (FI_OP_RECV, FI_OP_TRECV). It takes a place among EndpointAttr.ReceiveSize receives
// when it is queued. When the time has come it is posted by the thread that makes
// progress, and so is behind receives that are posted at the same time. Work.Completion
// counts when its buffer is the caller's again.
type RecvWork struct {
	Endpoint *Endpoint // that has receives of its own
	Receive  *Receive
	Tagged   bool
	Flags    OpFlags // those of a receive but for FlagPeek, FlagClaim and FlagDiscard
}

// CounterWork changes a counter (FI_OP_CNTR_ADD, or FI_OP_CNTR_SET with Set).
type CounterWork struct {
	Counter *Counter
	Value   uint64
	Set     bool // sets the counter to Value, in place of adding Value
}

// ErrNotQueued means that there is nothing to cancel.
var ErrNotQueued = reason(syscall.ENOENT, "the work is not queued: it has started, was cancelled, or never was queued")

// QueueWork takes in work, to be done when the time has come (fi_control with
// FI_QUEUE_WORK). The buffers of an operation must stay untouched until its completion;
// the Work itself, and the Msg, are copied, and w is only the name by which CancelWork
// knows it. Errors are those of the post: what is not queued is not done. ErrAgain means
// that as many operations are deferred as EndpointAttr.Size says, or receives are posted
// and deferred as ReceiveSize says, that the completion queue is full, or that 65536
// changes of counters are queued.
//
// A counter cannot be closed as long as work needs it.
func (d *Domain) QueueWork(w *Work) error {
	if err := d.there(); err != nil {
		return err
	}
	if w == nil || w.Do == nil {
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: deferred work: nothing to do: want a Work with an AtomicWork, an RMAWork, a "+
				"SendWork, a RecvWork or a CounterWork")
	}
	if err := d.checkThreshold(&w.When); err != nil {
		return err
	}
	if c := w.Completion; c != nil && c.dom != d {
		return fmt.Errorf("xdpfab: deferred work: the completion counter: %w: want one of domain %s", ErrForeign,
			d.label())
	}
	return w.Do.queue(d, w)
}

func (a AtomicWork) queue(d *Domain, w *Work) error {
	verb, known := verbOf[a.Func]
	switch {
	case !known:
		return errno.Refuse(ErrOpNotSupported, "xdpfab: deferred work: form %v: want Base, Fetch or Compare", a.Func)
	case a.Msg == nil:
		return errno.Refuse(ErrLength, "xdpfab: deferred work: the message is nil: want a Msg")
	}
	if err := d.checkWork(a.Endpoint, a.Msg.Trigger); err != nil {
		return err
	}
	m := *a.Msg
	m.Trigger, m.work = &w.When, w
	return a.Endpoint.post(verb, &m, a.Flags, 0)
}

func (a RMAWork) queue(d *Domain, w *Work) error {
	verb := wire.VerbRead
	switch {
	case a.Op == atomic.Write:
		verb = wire.VerbWrite
	case a.Op != atomic.Read:
		return errno.Refuse(ErrOpNotSupported, "xdpfab: deferred work: RMA by %v: want Read or Write", a.Op)
	}
	if a.RMA == nil {
		return errno.Refuse(ErrLength, "xdpfab: deferred work: the message is nil: want an RMA")
	}
	if err := d.checkWork(a.Endpoint, a.RMA.Trigger); err != nil {
		return err
	}
	x := *a.RMA
	x.Trigger, x.work = &w.When, w
	return a.Endpoint.transfer(verb, &x, a.Flags, 0)
}

func (s SendWork) queue(d *Domain, w *Work) error {
	if s.Message == nil {
		return errno.Refuse(ErrLength, "xdpfab: deferred work: the message is nil: want a Message")
	}
	if err := d.checkWork(s.Endpoint, s.Message.Trigger); err != nil {
		return err
	}
	m := *s.Message
	m.Trigger, m.work = &w.When, w
	verb := wire.VerbSend
	if s.Tagged {
		verb = wire.VerbTagged
	}
	return s.Endpoint.send(verb, &m, s.Flags, 0)
}

// checkWork returns an error for an operation that cannot be the domain's deferred work.
func (d *Domain) checkWork(ep *Endpoint, at *Threshold) error {
	switch {
	case ep == nil || ep.dom != d:
		return errno.Refuse(ErrForeign,
			"xdpfab: deferred work: the endpoint is nil, or of another domain: want one of %s",
			d.label())
	case at != nil:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: deferred work: the message has a trigger beside Work.When: want one of the two")
	}
	return nil
}

func (c CounterWork) queue(d *Domain, w *Work) error {
	if c.Counter == nil || c.Counter.dom != d {
		return errno.Refuse(ErrForeign,
			"xdpfab: deferred work: the counter is nil, or of another domain: want one of %s",
			d.label())
	}
	x := &deferred{at: w.When, done: w.Completion, known: w, change: c}
	for _, c := range x.counters() {
		c.owner.CompareAndSwap(nil, d.node.Steppers[0])
	}
	return d.triggers.add(x)
}

// CancelWork takes queued work out before it has started (fi_control with
// FI_CANCEL_WORK). It ends as failed: an operation completes with ErrNotExecuted and
// ErrCancelled, a receive with ErrCancelled, and the completion counter counts a failure.
// ErrNotQueued means that it is too late.
func (d *Domain) CancelWork(w *Work) error {
	if err := d.there(); err != nil {
		return err
	}
	if n := d.cancelWork(func(x *deferred) bool { return x.known != nil && x.known == w }); n == 0 {
		return fmt.Errorf("xdpfab: %w", ErrNotQueued)
	}
	return nil
}

// FlushWork cancels everything in the domain that waits for a counter, as CancelWork
// does, and operations that were posted with Msg.Trigger as well (fi_control with
// FI_FLUSH_WORK).
func (d *Domain) FlushWork() {
	d.cancelWork(func(*deferred) bool { return true })
}

// cancelWork cancels the work for which match is true, and returns how much that is.
// Operations are taken out where they are told of, so that an endpoint that closes at
// the same time either finds them or has been told of them.
func (d *Domain) cancelWork(match func(*deferred) bool) int {
	t := &d.triggers
	t.mu.Lock()
	endpoints := t.endpoints(match)
	changes := t.take(func(w *deferred) bool { return w.ep == nil && match(w) })
	t.mu.Unlock()
	for _, w := range changes {
		if w.done != nil {
			w.done.AddErr(1)
		}
	}
	var n syncatomic.Int64
	for ep := range endpoints {
		ep.stepper.Call(func() {
			t.mu.Lock()
			ops := t.take(func(w *deferred) bool { return w.ep == ep && match(w) })
			t.mu.Unlock()
			ep.cancelOperations(ops)
			n.Add(int64(len(ops)))
		})
	}
	return len(changes) + int(n.Load())
}

// endWork takes no more work in, when the domain ends, and cancels what is left when all
// endpoints have ended.
func (d *Domain) endWork() {
	d.triggers.mu.Lock()
	d.triggers.closed = true
	d.triggers.mu.Unlock()
	d.FlushWork()
}
