// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"fmt"
	"slices"
)

// Bindable is an object that can be bound to an endpoint: an AddressVector, a
// CompletionQueue or a Counter.
type Bindable interface {
	// bindTo is called with the endpoint's mu held.
	bindTo(ep *Endpoint, flags BindFlags) error
}

// Bind connects the endpoint with an address vector, a completion queue or a counter
// (fi_ep_bind). For a counter, flags select the operations that it counts: BindRead
// (fetch and compare), BindWrite (base) or both. For a completion queue they may be
// BindTransmit and BindSelective; for an address vector they are 0.
func (ep *Endpoint) Bind(b Bindable, flags BindFlags) error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	switch phase := ep.phase.Load(); {
	case phase >= draining:
		return fmt.Errorf("xdpfab: endpoint %d: %w", ep.number, ErrClosed)
	case phase == enabled:
		return fmt.Errorf("xdpfab: endpoint %d is enabled: bind before Enable: %w", ep.number, ErrBusy)
	}
	if b == nil {
		return fmt.Errorf("xdpfab: endpoint %d: nothing to bind: want an address vector, a completion queue or a counter: %w", ep.number, ErrNotImplemented)
	}
	return b.bindTo(ep, flags)
}

func (q *CompletionQueue) bindTo(ep *Endpoint, flags BindFlags) error {
	if flags&^queueFlags != 0 {
		return fmt.Errorf("xdpfab: bind of a completion queue with flags %v: want some of %v: %w", flags, queueFlags, ErrNotImplemented)
	}
	if q.dom != ep.dom || ep.cq != nil {
		return fmt.Errorf("xdpfab: endpoint %d wants one completion queue of its own domain: %w", ep.number, ErrBusy)
	}
	st, err := q.bind(ep.stepper)
	if err != nil {
		return err
	}
	ep.cq, ep.stepper, ep.selective = q, st, flags&BindSelective != 0
	return nil
}

func (av *AddressVector) bindTo(ep *Endpoint, flags BindFlags) error {
	if flags != 0 {
		return fmt.Errorf("xdpfab: bind of an address vector with flags %v: %w", flags, ErrNotImplemented)
	}
	if av.dom != ep.dom || ep.av != nil {
		return fmt.Errorf("xdpfab: endpoint %d wants one address vector of its own domain: %w", ep.number, ErrBusy)
	}
	if err := av.use(ep); err != nil {
		return err
	}
	ep.av = av
	return nil
}

func (c *Counter) bindTo(ep *Endpoint, flags BindFlags) error {
	if flags == 0 || flags&^counterFlags != 0 {
		return fmt.Errorf("xdpfab: bind of a counter with flags %v: want BindRead, BindWrite or both: %w", flags, ErrNotImplemented)
	}
	counts := [directions]bool{reads: flags&BindRead != 0, writes: flags&BindWrite != 0}
	for direction, counted := range counts {
		if c.dom != ep.dom || counted && ep.cntr[direction] != nil {
			return fmt.Errorf("xdpfab: endpoint %d wants one counter a direction, of its own domain: %w", ep.number, ErrBusy)
		}
	}
	if !slices.Contains(ep.counters(), c) {
		if err := c.hold(); err != nil {
			return err
		}
	}
	for direction, counted := range counts {
		if counted {
			ep.cntr[direction] = c
		}
	}
	return nil
}

// counters returns the distinct counters bound.
func (ep *Endpoint) counters() []*Counter {
	var list []*Counter
	for _, c := range ep.cntr {
		if c != nil && !slices.Contains(list, c) {
			list = append(list, c)
		}
	}
	return list
}
