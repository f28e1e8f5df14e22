// SPDX-License-Identifier: Apache-2.0

package share

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Receiver is the guest's domain, which takes what comes for its endpoints. It is called
// on the engine's thread.
type Receiver interface {
	// Inflow takes the messages from an address to an endpoint; nil if it receives none.
	Inflow(endpoint uint16, from wire.Addr) session.Inflow
	// Events takes the events of an endpoint; nil if it takes none.
	Events(endpoint uint16) engine.Events
}

// incoming is the guest's end of the ring of arrivals.
type incoming struct {
	to       Receiver
	sessions map[uint64]session.Inflow
	read     uint64
	record   record // scratch
	message  wire.Message
	event    engine.Event
	part     []byte // scratch
}

// Deliver has what comes for the guest's endpoints go to a receiver. Before the engine is
// stepped.
func (c *Carrier) Deliver(to Receiver) { c.in.to = to }

// arrive takes records as long as there is room for what they bring, at most a burst.
func (c *Carrier) arrive() (n int) {
	h := c.area.h
	in := &c.in
	for arrived := h.arrived.Load(); n < burst && in.read != arrived; n++ {
		c.copyOut(bytesOfRecord(&in.record), in.read)
		r := &in.record
		size := min(int(r.Bytes), len(c.area.arrivals)-recordLen)
		if cap(in.part) < size {
			in.part = make([]byte, size)
		}
		in.part = in.part[:size]
		c.copyOut(in.part, in.read+recordLen)
		if !c.takeRecord(r, in.part) {
			break
		}
		in.read += spanOf(size)
	}
	if n > 0 {
		h.read.Store(in.read)
		if h.hostWaits.Load() != 0 && h.hostWaits.Swap(0) != 0 {
			c.bell.Ring()
		}
	}
	return n
}

// copyOut copies from a position of the ring.
func (c *Carrier) copyOut(to []byte, at uint64) {
	ring := c.area.arrivals
	n := copy(to, ring[at&uint64(len(ring)-1):])
	copy(to[n:], ring)
}

// takeRecord takes one record, and returns false if there is no room for what it brings.
func (c *Carrier) takeRecord(r *record, part []byte) bool {
	if r.Kind == kindEvent {
		return c.takeEvent(r)
	}
	in := c.in.sessions[r.Session]
	if in == nil {
		if r.Kind == kindEnd {
			return true
		}
		if in = c.in.to.Inflow(r.Endpoint, r.addr()); in == nil {
			return true // the endpoint has been closed
		}
		c.in.sessions[r.Session] = in
	}
	if r.Kind == kindEnd {
		in.Close()
		delete(c.in.sessions, r.Session)
		return true
	}
	in.Begin()
	defer in.End()
	switch r.Kind {
	case kindBegin, kindAnnounce:
		m := &c.in.message
		*m = wire.Message{Begins: true, Length: r.Length, Tag: r.Tag, Data: r.Data, Source: r.Source,
			Tagged: r.Flags&flagTagged != 0, HasData: r.Flags&flagData != 0, Match: r.Kind == kindAnnounce}
		if r.Flags&flagMatched == 0 && !in.Admit(m) {
			return false
		}
		if r.Kind == kindAnnounce {
			c.note(engine.Entry{Verb: VerbAdmit, Key: r.Session})
		} else {
			in.Put(part)
		}
	case kindPart:
		in.Put(part)
	case kindDrop:
		in.Drop()
	}
	return true
}

func (c *Carrier) takeEvent(r *record) bool {
	to := c.in.to.Events(r.Endpoint)
	if to == nil {
		return true // the endpoint has been closed
	}
	if !to.Take() {
		return false
	}
	e := &c.in.event
	*e = engine.Event{From: r.addr(), Notice: wire.Notice{Data: r.Data, Length: r.Length, Source: r.Source,
		Returns: r.Flags&flagReturns != 0, Transfer: r.Flags&flagTransfer != 0}}
	to.Deliver(e)
	return true
}

// closeSessions ends the sessions of peers: their messages that are not whole never will
// be.
func (c *Carrier) closeSessions() {
	for _, in := range c.in.sessions {
		in.Close()
	}
	clear(c.in.sessions)
}
