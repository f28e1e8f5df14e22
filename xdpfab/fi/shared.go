// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
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
	size, err := queueSize("shared transmit context", attr.Size)
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
func (x *SharedTransmit) Close() error { return x.close() }

func (x *SharedTransmit) bindTo(ep *endpoint, flags BindFlags) error {
	if flags != 0 {
		return fmt.Errorf("xdpfab: endpoint %d: a shared transmit context with flags %v: want none: %w", ep.number,
			flags, ErrBadFlags)
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
