// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"errors"
	"fmt"
)

// eventLink binds a domain or endpoint to an event queue, where a place is kept for the
// event of its end. A lock of its owner guards it.
type eventLink struct {
	queue *EventQueue // nil for none
	told  bool        // the event has been delivered
}

// link binds a queue. what is the owner, f its fabric.
func (l *eventLink) link(q *EventQueue, f *Fabric, what string) error {
	switch {
	case q == nil:
		return fmt.Errorf("xdpfab: %s: nothing to bind: %w", what, ErrNoEQ)
	case q.fabric != f:
		return fmt.Errorf("xdpfab: %s: the event queue is of another fabric: want one of the same: %w",
			what, ErrForeign)
	case l.queue != nil:
		return fmt.Errorf("xdpfab: %s has an event queue: want one: %w", what, ErrBusy)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.reserve(1); err != nil {
		return err
	}
	q.users++
	l.queue = q
	return nil
}

// tell delivers the loss of the interface, once; source is the owner, and context that of
// its attributes.
func (l *eventLink) tell(source, context any, cause error) {
	if l.queue != nil && !l.told && errors.Is(cause, ErrInterfaceLost) {
		l.told = true
		l.queue.deliver(Event{Kind: EventNotify, Source: source, Context: context, Err: cause})
	}
}

// cut undoes link, when the owner has ended.
func (l *eventLink) cut() {
	if l.queue == nil {
		return
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.queue.users--
	if !l.told {
		l.queue.promised--
	}
	l.queue = nil
}

// BindEQ binds an event queue of the same fabric to the domain (fi_domain_bind, and
// fi_av_bind for all of its address vectors). It gets the events of RegisterAsync and
// InsertAsync and, as an error event, the loss of the interface. It stays bound until the
// domain is closed.
func (d *Domain) BindEQ(q *EventQueue) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return err
	}
	return d.events.link(q, d.fabric, "domain on "+d.node.Dev.Info().Name)
}

// Fabric returns the fabric of the domain. For a domain that was made by Open or Pipe it
// is one of its own.
func (d *Domain) Fabric() *Fabric { return d.fabric }

// bindTo makes the queue get an error event for the endpoint when the interface is lost.
func (q *EventQueue) bindTo(ep *endpoint, flags BindFlags) error {
	if flags != 0 {
		return fmt.Errorf("xdpfab: bind of an event queue with flags %v: want none: %w", flags, ErrBadFlags)
	}
	return ep.events.link(q, ep.dom.fabric, fmt.Sprintf("endpoint %d", ep.number))
}
