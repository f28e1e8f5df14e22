// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// SharedTransmit is a transmit context that endpoints share (FI_SHARED_CONTEXT of
// fi_endpoint(3)): they have as many operations in flight together as it has places, and
// each no more than its own EndpointAttr.Size. Endpoints that are seldom busy at the same
// time can so be bounded together. All else is their own: sessions and order, the
// completion queue and the counters, and what they receive.
type SharedTransmit struct {
	object
	size int64
	used gauge[int64] // places taken, and attempts under way
}

// SharedTransmitAttr are the attributes of a shared transmit context.
type SharedTransmitAttr struct {
	// Size is the most operations that may be in flight, deferred ones included; more are
	// refused with ErrAgain. It is rounded up to a power of two; 1024.
	Size int
}

// NewSharedTransmit makes a transmit context, to be bound to endpoints (fi_stx_context).
func (d *Domain) NewSharedTransmit(attr SharedTransmitAttr) (*SharedTransmit, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	size, err := queueSize("shared transmit context: Size", attr.Size)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return nil, err
	}
	x := &SharedTransmit{size: int64(size)}
	d.isolate([]*gauge[int64]{&x.used}, nil)
	x.open(d, "shared transmit context", nil)
	return x, nil
}

// Attr returns the attributes in force.
func (x *SharedTransmit) Attr() SharedTransmitAttr { return SharedTransmitAttr{Size: int(x.size)} }

// Close ends the use of the context. It reports ErrBusy as long as an endpoint is bound.
// Closing twice is no error.
func (x *SharedTransmit) Close() error {
	if err := x.there(); err != nil {
		return err
	}
	return x.close()
}

func (x *SharedTransmit) bindTo(ep *endpoint, flags BindFlags) error {
	if flags != 0 {
		return errno.Refuse(ErrBadFlags,
			"xdpfab: endpoint %d: a shared transmit context with flags %v: want none", ep.number,
			flags)
	}
	if err := ep.accepts("a shared transmit context", x.dom, ep.shared != nil); err != nil {
		return err
	}
	if err := x.hold(); err != nil {
		return err
	}
	ep.shared = x
	return nil
}

// take takes a place, and give gives places back; a nil context has places for all. Any
// thread.
func (x *SharedTransmit) take() bool {
	if x == nil || x.used.Add(1) <= x.size {
		return true
	}
	x.used.Add(-1)
	return false
}

func (x *SharedTransmit) give(n int) {
	if x != nil {
		x.used.Add(-int64(n))
	}
}

// sharedTransmit returns the context that is bound.
func (ep *endpoint) sharedTransmit() *SharedTransmit {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.shared
}

// SharedReceive is a receive context that endpoints share (fi_srx_context): receives that
// are posted to it take the messages of all of them, so that buffers need not be posted
// to each. Each completion names the endpoint to which its message was sent; the queue
// is one for all. Messages match in the order in which they come, whatever the endpoint.
//
// Bind it to endpoints in the place of a queue with BindRecv. They receive nothing by
// themselves.
type SharedReceive struct {
	object
	attr  SharedReceiveAttr
	queue receiveQueue
}

// SharedReceiveAttr are the attributes of a shared receive context. The fields but Queue
// are those of EndpointAttr, with the same defaults.
type SharedReceiveAttr struct {
	// Queue gets the completions of receives, and those of operations of peers that carry
	// data, of all the endpoints.
	Queue           *CompletionQueue
	Counter         *Counter // of receives; may be nil
	Selective       bool     // Queue is bound as with BindSelective
	ReceiveSize     int
	BufferedReceive int
	MinMultiRecv    int
	ReceiveFlags    OpFlags
}

// NewSharedReceive makes a receive context, to be bound to endpoints (fi_srx_context).
func (d *Domain) NewSharedReceive(attr SharedReceiveAttr) (*SharedReceive, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	a := EndpointAttr{ReceiveSize: attr.ReceiveSize, BufferedReceive: attr.BufferedReceive,
		MinMultiRecv: attr.MinMultiRecv, ReceiveFlags: attr.ReceiveFlags}
	if err := a.receiveDefaults(); err != nil {
		return nil, err
	}
	attr.ReceiveSize, attr.BufferedReceive, attr.MinMultiRecv = a.ReceiveSize, a.BufferedReceive, a.MinMultiRecv
	switch q, c := attr.Queue, attr.Counter; {
	case q == nil:
		return nil, fmt.Errorf("xdpfab: shared receive context: %w: want one for the completions", ErrNoCQ)
	case q.dom != d || c != nil && c.dom != d:
		return nil, errno.Refuse(ErrForeign,
			"xdpfab: shared receive context: its queue or counter is of another domain: want those of %s",
			d.label())
	}
	if err := attr.hold(); err != nil {
		return nil, err
	}
	attr.Queue.receive(d.node.Steppers[0])
	x := &SharedReceive{attr: attr,
		queue: receiveQueue{dom: d, what: "shared receive context", cq: attr.Queue, counter: attr.Counter,
			flags: attr.ReceiveFlags, selective: attr.Selective}}
	x.leave = x.end
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		attr.release()
		return nil, err
	}
	x.queue.open(&x.queue, attr.ReceiveSize, attr.BufferedReceive, attr.MinMultiRecv)
	x.open(d, x.queue.what, nil)
	return x, nil
}

// hold keeps the queue and the counter open.
func (a *SharedReceiveAttr) hold() error {
	if err := a.Queue.hold(); err != nil {
		return err
	}
	if a.Counter == nil {
		return nil
	}
	err := a.Counter.hold()
	if err != nil {
		a.Queue.drop()
	}
	return err
}

// release undoes hold. The domain's mu is held.
func (a *SharedReceiveAttr) release() {
	a.Queue.users--
	if a.Counter != nil {
		a.Counter.users--
	}
}

// end cancels the receives that are posted. The domain's mu is held.
func (x *SharedReceive) end() error {
	x.queue.close()
	x.attr.release()
	return nil
}

// Attr returns the attributes in force.
func (x *SharedReceive) Attr() SharedReceiveAttr { return x.attr }

// Receive is Endpoint.Receive, for messages to any of the endpoints. There is no
// FlagDirected, since each of them has an address vector of its own.
func (x *SharedReceive) Receive(r *Receive, flags OpFlags) error {
	return x.receive(r, flags, false)
}

func (x *SharedReceive) receive(r *Receive, flags OpFlags, tagged bool) error {
	if err := x.there(); err != nil {
		return err
	}
	if err := x.ended(); err != nil {
		return err
	}
	return x.queue.receive(r, flags, tagged)
}

// ReceiveTagged is Endpoint.ReceiveTagged; see Receive.
func (x *SharedReceive) ReceiveTagged(r *Receive, flags OpFlags) error {
	return x.receive(r, flags, true)
}

// Cancel is Endpoint.Cancel.
func (x *SharedReceive) Cancel(context any) error {
	if err := x.there(); err != nil {
		return err
	}
	if err := x.ended(); err != nil {
		return err
	}
	return x.queue.cancel(context)
}

// SetMinMultiRecv is Endpoint.SetMinMultiRecv.
func (x *SharedReceive) SetMinMultiRecv(bytes int) error {
	if err := x.there(); err != nil {
		return err
	}
	return x.queue.setMinMultiRecv(bytes)
}

// MinMultiRecv is Endpoint.MinMultiRecv.
func (x *SharedReceive) MinMultiRecv() int { return int(x.queue.minMultiRecv.Load()) }

// Close ends the use of the context: receives that are posted complete as cancelled, and
// messages that are kept are dropped. It reports ErrBusy as long as an endpoint is bound.
// Closing twice is no error.
func (x *SharedReceive) Close() error {
	if err := x.there(); err != nil {
		return err
	}
	return x.close()
}

// sharedReceives returns the context that is bound.
func (ep *endpoint) sharedReceives() *SharedReceive {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	return ep.sharedReceive
}

func (x *SharedReceive) bindTo(ep *endpoint, flags BindFlags) error {
	switch {
	case flags != 0:
		return errno.Refuse(ErrBadFlags,
			"xdpfab: endpoint %d: a shared receive context with flags %v: want none", ep.number,
			flags)
	case ep.attr.InitiateOnly:
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: endpoint %d: a shared receive context of an endpoint that peers cannot address: "+
				"want one that is not InitiateOnly", ep.number)
	case ep.cntr[receives] != nil:
		return errno.Refuse(ErrBusy,
			"xdpfab: endpoint %d: a counter with %v is bound: want SharedReceiveAttr.Counter in its place",
			ep.number, BindRecv)
	}
	if err := ep.accepts("a queue for receiving, or a shared receive context,", x.dom, ep.recv != nil); err != nil {
		return err
	}
	if err := x.hold(); err != nil {
		return err
	}
	if err := x.attr.Queue.hold(); err != nil {
		x.drop()
		return err
	}
	ep.recv, ep.receiveQueue, ep.sharedReceive = x.attr.Queue, &x.queue, x
	return nil
}
