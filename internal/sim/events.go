// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Some operations ask for an event at their target, with their number as the data. An
// event comes once for each that succeeds, in the order of its pair, and not before
// memory shows what the operation has done.

// ask makes some operations ask for an event, if their target can have events.
func (o *op) ask() *op {
	p := o.peer
	if w := p.c.n.w; o.letter == nil && o.signal == 0 && o.value%4 == 1 && takesEvents(p.endpoint) &&
		p.c.n.features()&p.target.features()&wire.FeatureNotices != 0 {
		w.asking = append(w.asking, o)
		o.data = uint64(len(w.asking))
	}
	return o
}

// takesEvents reports whether an endpoint has events. The others of its node do not.
func takesEvents(endpoint uint16) bool { return endpoint < endpoints && endpoint%2 == 0 }

// events returns where the events of an endpoint go.
func (n *node) events(endpoint uint16) engine.Events {
	if !takesEvents(endpoint) {
		return nil
	}
	return &listener{n, endpoint}
}

// listener takes the events of one endpoint.
type listener struct {
	n        *node
	endpoint uint16
}

// fullEvery is how many frames with a notice come for each one for which there is no
// place yet.
const fullEvery = 5

// Take implements engine.Events.
func (l *listener) Take() bool {
	if l.n.asked++; l.n.asked%fullEvery == 0 {
		l.n.w.count(placesRefused)
		l.n.refused = true
		return false
	}
	l.n.places++
	return true
}

// Return implements engine.Events.
func (l *listener) Return() { l.n.places-- }

// Deliver implements engine.Events.
func (l *listener) Deliver(e *engine.Event) {
	w := l.n.w
	l.n.places--
	w.count(eventsCame)
	if e.Data == 0 || e.Data > uint64(len(w.asking)) {
		w.fail("%v: an event with data %d, which no operation has", l.n, e.Data)
		return
	}
	o := w.asking[e.Data-1]
	w.trace.event("event %v", o)
	o.events++
	from := o.from()
	switch p := o.peer.pair; {
	case o.events > 1:
		w.fail("%v: %d events", o, o.events)
	case p.target != l.n || p.endpoint != l.endpoint:
		w.fail("%v: its event is at endpoint %d of %v", o, l.endpoint, l.n)
	case e.From != from || e.Returns != o.fetches() || e.Transfer != o.copies() ||
		e.Length != uint64(o.count*o.datatype.Size()):
		w.fail("%v: its event is %+v, want one from %v", o, e, from)
	case p.told > o.seq && !p.c.anyOrder:
		w.fail("%v: its event comes behind that of operation %d", o, p.told)
	case !o.shows():
		w.fail("%v: its event comes before memory has changed", o)
	default:
		p.told = o.seq
	}
}

// shows reports whether memory can have what the operation added to it, on top of what
// earlier ones of its pair that succeeded did.
func (o *op) shows() bool {
	r := o.peer.target.regions[o.region]
	if o.code != uint8(atomic.Sum) || o.datatype != atomic.Uint64 || o.refused || r.wiped(o.call, o.peer.c.n.w.now) {
		return true
	}
	for i := o.first; i < o.first+o.count; i++ {
		least := o.value
		for _, b := range o.peer.ops[:o.seq] {
			if b.region == o.region && b.code == o.code && b.first <= i && i < b.first+b.count && b.succeeded() &&
				!r.wiped(b.call, o.peer.c.n.w.now) {
				least += b.value
			}
		}
		if r.word(i).lo < least {
			return false
		}
	}
	return true
}

// checkEvents checks that an operation has had the events that its outcome says.
func (w *world) checkEvents(o *op) {
	switch {
	case o.data == 0:
	case o.succeeded() && o.events != 1:
		w.fail("%v succeeded, with %d events: want 1", o, o.events)
	case !o.succeeded() && !o.mayHaveRun() && o.events != 0:
		w.fail("%v was not executed, but there are %d events", o, o.events)
	}
}

// checkPlaces checks, between two steps, that no place for an event is kept, but for
// frames that a guest executes.
func (n *node) checkPlaces() {
	handed := 0
	for _, x := range n.execs {
		handed += x.Usage().Handed
	}
	if n.places < 0 || n.places > handed {
		n.w.fail("%v: %d places for events are taken, want at most those of %d frames between two steps", n, n.places,
			handed)
	}
}
