// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// An operation with data (FlagData) is followed by a notice, a record that ends its
// frame. When the target has executed it, the owner of the target has an event. The
// initiator names the session's records that the notice covers, and the executor looks
// whether all of them have succeeded: so the event needs no other round trip.

// Event tells the owner of an endpoint that an operation of a peer has been executed.
type Event struct {
	wire.Notice
	From wire.Addr // the initiating endpoint
}

// Events takes the events of one endpoint. Its methods are called on the threads of all
// engines that have sessions with the endpoint, and must not block.
type Events interface {
	session.Places
	// Deliver takes an event, for which a place has been taken. The event is valid during
	// the call.
	Deliver(e *Event)
}

// eventsFor returns where the events of a session go that a hello asks for, or nil if it
// has none.
func (e *Engine) eventsFor(m *wire.HelloMsg) Events {
	if e.cfg.Events == nil || !e.known(m).Allow(wire.VerbNotice) {
		return nil
	}
	return e.cfg.Events(m.Endpoint)
}

// deliver hands on what a frame had to tell.
func (t *target) deliver(notices []wire.Notice) {
	for _, n := range notices {
		e := &t.e.event
		e.Notice, e.From = n, t.from
		e.From.Endpoint = n.Source
		t.events.Deliver(e)
	}
}

// nextUnit is called when a frame is begun. Within a unit the target executes records in
// their order, so that a notice can cover what came before it. A unit is a session, known
// by its serial number, or, if there is no order, a frame.
func (c *conn) nextUnit() {
	if o := c.r.origin; o.unordered {
		if o.units++; o.units == several {
			o.units++
		}
		c.unit = o.units
	}
}

// several takes the place of the number of a unit, which is never 0, if parts of an
// operation have gone out in more than one.
const several = 0

// cover records that records of an operation with data are in the frame at hand.
func (f *flight) cover(c *conn, records uint32) {
	if f.covered == 0 {
		f.by = c.unit
	} else if f.by != c.unit {
		f.by = several
	}
	f.covered += records
}

// waits reports whether the notice of an operation is all that is left to be sent, but
// cannot be sent yet: it cannot cover the parts that are in other units than the frame at
// hand, so those have to be answered first.
func (f *flight) waits(c *conn) bool {
	if f.Verb == wire.VerbSignal {
		return f.signalWaits(c)
	}
	return f.notices() && !f.whole() && f.sent >= f.elements() && f.by != c.unit && f.pending > 0
}

// packNotice appends the notice of an operation whose other records are packed.
// If a part is in another unit, all is known to have succeeded, and the notice covers
// nothing.
func (c *conn) packNotice(w *wire.RecordWriter, f *flight, frag *fragment) {
	n := wire.Notice{Data: f.Data, Length: uint64(f.bytes()), Source: c.r.origin.endpoint, Returns: f.Verb.Returns(),
		Transfer: f.Verb.Transfer()}
	if f.by == c.unit {
		n.Covers = f.covered
	}
	if w.Notice(&n) {
		f.noted = true
		frag.records = 1
	}
}
