// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
)

// Bindable is an object that can be bound to an endpoint: an AddressVector, a
// CompletionQueue, a Counter, an EventQueue, a SharedTransmit or a SharedReceive.
type Bindable interface {
	there() error
	// bindTo is called with the endpoint's mu held.
	bindTo(ep *endpoint, flags BindFlags) error
}

// Bind connects the endpoint with an address vector, a completion queue, a counter or an
// event queue (fi_ep_bind). For a counter, flags select the operations that it counts:
// BindRead (fetch and compare) and BindWrite (base) of this endpoint, BindRemoteRead and
// BindRemoteWrite of its peers. For a completion queue they may be BindTransmit, BindRecv
// and BindSelective; an endpoint can have one queue for both directions, or one for each.
// For the others they are 0. An event queue gets an error event for the
// endpoint when the interface is lost.
func (ep *Endpoint) Bind(b Bindable, flags BindFlags) error {
	if err := ep.there(); err != nil {
		return err
	}
	ep.mu.Lock()
	defer ep.mu.Unlock()
	switch phase := ep.phase.Load(); {
	case phase >= draining:
		return ep.errClosed()
	case phase == enabled:
		return errno.Refuse(ErrBusy, "xdpfab: endpoint %d is enabled: bind before Enable", ep.number)
	}
	if b == nil {
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: endpoint %d: nothing to bind: want an address vector, a completion queue, a "+
				"counter or an event queue", ep.number)
	}
	if err := b.there(); err != nil {
		return err
	}
	if err := ep.attr.part.mayBind(b, flags); err != nil {
		return err
	}
	return b.bindTo(ep.endpoint, flags)
}

// accepts reports an error when an object of a domain cannot be bound: the domain must be
// the endpoint's, and there must not be such an object yet.
func (ep *endpoint) accepts(what string, dom *Domain, bound bool) error {
	switch {
	case dom != ep.dom:
		return errno.Refuse(ErrForeign,
			"xdpfab: endpoint %d: %s belongs to another domain: want one of the endpoint's own",
			ep.number, what)
	case bound:
		return errno.Refuse(ErrBusy, "xdpfab: endpoint %d: %s is bound already: want only one", ep.number, what)
	}
	return nil
}

func (q *CompletionQueue) bindTo(ep *endpoint, flags BindFlags) error {
	if flags&^queueFlags != 0 {
		return errno.Refuse(ErrBadFlags,
			"xdpfab: endpoint %d: a completion queue with flags %v: want some of %v", ep.number,
			flags, queueFlags)
	}
	receive, transmit := flags&BindRecv != 0, flags&BindTransmit != 0 || flags&BindRecv == 0
	selective := flags&BindSelective != 0
	if receive {
		if err := ep.accepts("a completion queue for receiving", q.dom, ep.recv != nil); err != nil {
			return err
		}
	}
	if transmit {
		if err := q.bindTransmit(ep, selective); err != nil {
			return err
		}
	}
	if receive {
		return q.bindReceive(ep, selective)
	}
	return nil
}

// bindTransmit binds the queue for the operations that the endpoint posts.
func (q *CompletionQueue) bindTransmit(ep *endpoint, selective bool) error {
	if err := ep.accepts("a completion queue", q.dom, ep.cq != nil); err != nil {
		return err
	}
	st, err := q.bind(ep.stepper)
	if err != nil {
		return err
	}
	ep.cq, ep.stepper, ep.selective = q, st, selective
	return nil
}

// bindReceive binds the queue for receives and the events of peers.
func (q *CompletionQueue) bindReceive(ep *endpoint, selective bool) error {
	if _, err := q.bind(ep.stepper); err != nil {
		return err
	}
	q.receive(ep.stepper)
	ep.recv, ep.selectiveRecv = q, selective
	return nil
}

// receive makes room in the queue for what comes from peers.
func (q *CompletionQueue) receive(st *node.Stepper) {
	q.owner.CompareAndSwap(nil, st)
	q.arrivals.CompareAndSwap(nil, newArrivals(int(q.size)))
}

func (av *AddressVector) bindTo(ep *endpoint, flags BindFlags) error {
	if flags != 0 {
		return errno.Refuse(ErrBadFlags,
			"xdpfab: endpoint %d: an address vector with flags %v: want none", ep.number, flags)
	}
	if ep.conn != nil {
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: endpoint %d: an address vector of an endpoint of type %v: want none, as it has one peer",
			ep.number, EndpointMsg)
	}
	if err := ep.accepts("an address vector", av.dom, ep.av != nil); err != nil {
		return err
	}
	if err := av.use(ep); err != nil {
		return err
	}
	ep.av = av
	return nil
}

func (c *Counter) bindTo(ep *endpoint, flags BindFlags) error {
	if flags == 0 || flags&^counterFlags != 0 {
		return errno.Refuse(ErrBadFlags,
			"xdpfab: endpoint %d: a counter with flags %v: want some of %v", ep.number, flags,
			counterFlags)
	}
	for _, b := range ep.countings() {
		if flags&b.flag == 0 {
			continue
		}
		if err := ep.accepts(fmt.Sprintf("a counter with %v", b.flag), c.dom, *b.counter != nil); err != nil {
			return err
		}
		if b.flag == BindRecv && ep.sharedReceive != nil {
			return errno.Refuse(ErrBusy,
				"xdpfab: endpoint %d: a counter with %v, and a shared receive context: want "+
					"SharedReceiveAttr.Counter", ep.number, BindRecv)
		}
	}
	if !slices.Contains(ep.counters(), c) {
		if err := c.hold(); err != nil {
			return err
		}
	}
	for _, b := range ep.countings() {
		if flags&b.flag != 0 {
			*b.counter = c
		}
	}
	return nil
}

// counting is a place for a counter.
type counting struct {
	flag    BindFlags
	counter **Counter
}

// countings returns the places for counters.
func (ep *endpoint) countings() [6]counting {
	return [...]counting{
		{BindRead, &ep.cntr[reads]}, {BindWrite, &ep.cntr[writes]},
		{BindTransmit, &ep.cntr[sends]}, {BindRecv, &ep.cntr[receives]},
		{BindRemoteRead, &ep.remote[reads]}, {BindRemoteWrite, &ep.remote[writes]},
	}
}

// counters returns the distinct counters bound.
func (ep *endpoint) counters() []*Counter {
	var list []*Counter
	for _, b := range ep.countings() {
		if c := *b.counter; c != nil && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}
