// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// receiveQueue is what receives are posted to, of one endpoint or of those that share it.
// It implements matching.Sink, on the threads of the engines and of the callers that post
// receives.
type receiveQueue struct {
	dom          *Domain
	what         string           // it is called in errors
	ep           *endpoint        // whose it is; nil if it is shared
	cq           *CompletionQueue // nil for a mailbox, whose completions go to receive calls
	counter      *Counter         // of receives; or nil
	queue        *matching.Queue
	flags        OpFlags      // that FlagDefaults stands for
	selective    bool         // only failures, and receives with FlagCompletion, make entries
	minMultiRecv atomic.Int64 // bytes
}

// open makes the queue of receives.
func (r *receiveQueue) open(to matching.Sink, size, buffered, minMultiRecv int) {
	r.minMultiRecv.Store(int64(minMultiRecv))
	r.queue = matching.New(matching.Config{Receives: size, Unexpected: size, Memory: max(buffered, 0), Sink: to,
		Room: r.dom.node.Room})
	if r.cq != nil {
		r.cq.receives.add(r.queue)
	}
}

// close cancels the receives that are posted.
func (r *receiveQueue) close() {
	r.queue.Close()
	if r.cq != nil {
		r.cq.receives.remove(r.queue)
	}
}

func (r *receiveQueue) Take() bool { return r.cq.arrivals.Load().receives.take() }

// Return gives the place back. Other receive queues with the same completion queue may
// wait for one: the engines tell them, since here a lock is held.
func (r *receiveQueue) Return() {
	r.cq.arrivals.Load().receives.taken.Add(-1)
	r.dom.node.Room()
}

func (r *receiveQueue) Deliver(d *matching.Done) {
	var err *OpError
	if why := d.Reason; why != matching.Received {
		err = &OpError{Op: "receive", Peer: peerOf(d), Cause: receiveErrors[why]}
	}
	r.tell(d, d.Received, err)
	if d.Note != nil {
		d.Note.(*deferred).received(d)
	}
}

// found writes the completion of a look at a message, or of one for which no message was
// there.
func (r *receiveQueue) found(d *matching.Done, ok bool) {
	if ok {
		r.tell(d, d.Length, nil)
		return
	}
	r.tell(d, 0, &OpError{Op: "peek", Cause: ErrNoMessage})
}

// tell writes a completion of so many bytes, for which a place has been taken, and counts
// it. The success of a silent receive leaves the place empty, unless the caller would not
// know that a multi-receive buffer is its own again.
func (r *receiveQueue) tell(d *matching.Done, bytes uint64, err *OpError) {
	c := Completion{
		Context: d.Context, Flags: CompletionMsg | CompletionRecv, Bytes: int(min(bytes, math.MaxInt)),
		Overflow: int(min(d.Length-bytes, math.MaxInt)), Tag: d.Tag, Offset: int(d.Offset),
	}
	if to, known := d.To.(*endpoint); known {
		c.Endpoint = &to.handle
	} else if r.ep != nil {
		c.Endpoint = &r.ep.handle
	}
	if d.Tagged {
		c.Flags ^= CompletionMsg | CompletionTagged
	}
	if d.Atomic {
		c.Flags |= CompletionAtomic
	}
	if d.HasData {
		c.Flags |= CompletionRemoteCQData
		c.Data = d.Data
	}
	if d.Released {
		c.Flags |= CompletionMultiRecv
	}
	switch {
	case err != nil:
		c.Err = err
		if r.counter != nil {
			r.counter.count(0, 1)
		}
	case r.counter != nil:
		r.counter.succeeded(1, bytes)
	}
	if d.Silent && err == nil && !d.Released {
		r.Return()
		return
	}
	r.cq.arrived(&d.From, &c)
}

// peerOf returns the text form of the address that a message came from; empty if there is
// no message.
func peerOf(d *matching.Done) string {
	if d.From == (wire.Addr{}) {
		return ""
	}
	return d.From.String()
}

// receiveErrors are the causes of receives that fail.
var receiveErrors = map[matching.Reason]error{
	matching.Truncated: ErrTruncated, matching.Cancelled: ErrCancelled, matching.Lost: ErrSessionLost,
	matching.Spent:       ErrSessionLost,
	matching.Misplaced:   fmt.Errorf("%w: or elements lie in several buffers of the receive", ErrMisaligned),
	matching.Unsupported: ErrOpNotSupported,
}

// openReceives makes the receive queue of an endpoint that is enabled, unless it shares
// one.
func (ep *endpoint) openReceives() {
	if ep.receiveQueue != nil || !ep.attr.mails && (ep.recv == nil || ep.attr.InitiateOnly) {
		return
	}
	r := &receiveQueue{dom: ep.dom, what: fmt.Sprintf("endpoint %d", ep.number), ep: ep, cq: ep.recv,
		counter: ep.cntr[receives],
		flags:   ep.attr.ReceiveFlags, selective: ep.selectiveRecv}
	to := matching.Sink(r)
	if ep.attr.mails {
		to = calls.ReceiveCalls{Stepper: ep.stepper}
	}
	r.open(to, ep.attr.ReceiveSize, ep.attr.BufferedReceive, ep.attr.MinMultiRecv)
	ep.receiveQueue = r
}

// closeReceives cancels the receives that are posted.
func (ep *endpoint) closeReceives() {
	if ep.receiveQueue != nil && ep.receiveQueue.ep == ep {
		ep.receiveQueue.close()
	}
}

// SetMinMultiRecv changes EndpointAttr.MinMultiRecv, for receives that are posted from
// now on (fi_setopt with FI_OPT_MIN_MULTI_RECV).
func (ep *Endpoint) SetMinMultiRecv(bytes int) error {
	if err := ep.there(); err != nil {
		return err
	}
	r, err := ep.receiving()
	if err != nil {
		return err
	}
	return r.setMinMultiRecv(bytes)
}

// MinMultiRecv returns what SetMinMultiRecv or the attributes have set (fi_getopt).
func (ep *Endpoint) MinMultiRecv() int {
	if r, err := ep.receiving(); err == nil {
		return int(r.minMultiRecv.Load())
	}
	return ep.attr.MinMultiRecv
}

func (r *receiveQueue) setMinMultiRecv(bytes int) error {
	if bytes < 1 {
		return errno.Refuse(ErrCount, "xdpfab: %s: %d free bytes of a multi-receive buffer: want at least 1", r.what,
			bytes)
	}
	r.minMultiRecv.Store(int64(bytes))
	return nil
}

// receiveQueues are the queues of receives whose completions come to one completion
// queue.
type receiveQueues struct {
	list atomic.Pointer[[]*matching.Queue]
}

// freed tells them that n completions have been read.
func (f *receiveQueues) freed(n int) {
	if list := f.list.Load(); n > 0 && list != nil {
		for _, q := range *list {
			q.Freed()
		}
	}
}

func (f *receiveQueues) add(q *matching.Queue) {
	f.change(func(l []*matching.Queue) []*matching.Queue { return append(l, q) })
}

func (f *receiveQueues) remove(q *matching.Queue) {
	f.change(func(l []*matching.Queue) []*matching.Queue {
		return slices.DeleteFunc(l, func(x *matching.Queue) bool { return x == q })
	})
}

// change replaces the list; endpoints may do so at the same time.
func (f *receiveQueues) change(by func([]*matching.Queue) []*matching.Queue) {
	for {
		old := f.list.Load()
		var list []*matching.Queue
		if old != nil {
			list = slices.Clone(*old)
		}
		if list = by(list); f.list.CompareAndSwap(old, &list) {
			return
		}
	}
}

// Roomy tells the receive queues that there may be places in their completion queues, and
// starts deferred receives. It runs on the engines' threads, after room.
func (d asOwner) Roomy() {
	if d.triggers.receipts.any.Load() {
		d.triggers.startReceives()
	}
	for _, ep := range *d.served.Load() {
		if ep.recv != nil {
			ep.recv.receives.freed(1)
		}
	}
}

func (ep *endpoint) newInflow(from wire.Addr) *matching.Inflow {
	in := ep.receiveQueue.queue.NewInflow(from)
	in.To = ep
	return in
}
