// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// incoming is the guest's end of the ring of arrivals.
type incoming struct {
	to       Receiver
	sessions map[uint64]*incomingSession
	waiting  []*incomingSession // those whose messages are announced, and not admitted; the oldest first
	called   called
	room     atomic.Bool // there may be room for them
	cramped  bool        // the arena had none
	read     uint64
	parked   parked
	record   record // scratch
	message  wire.Message
	event    engine.Event
	part     []byte // scratch
	values   []byte // likewise

	operation wire.Record // likewise
	operated  bool        // operations have been executed since Settle was called
}

// incomingSession is a session of a peer with an endpoint of the guest.
type incomingSession struct {
	Inflow
	number   uint64
	endpoint uint16
	identity uint64
	waits    bool         // it is in incoming.waiting
	message  wire.Message // that is announced
	admitted bool         // it is, and has not begun to come
	values   block        // what the elements hold that it is an atomic on
}

// Deliver has what comes for the guest's endpoints go to a receiver. Before the engine is
// stepped.
func (c *GuestRing) Deliver(to Receiver) { c.in.to = to }

// arrive takes records as long as there is room for what they bring, at most a burst, and
// what has waited for room.
func (c *GuestRing) arrive() (n int) {
	h := c.segment.h
	in := &c.in
	waited := 0
	if len(in.parked.of) > 0 {
		waited = c.unpark()
	}
	for arrived := h.arrived.Load(); n < burst && in.read != arrived; n++ {
		c.copyOut(bytesOfRecord(&in.record), in.read)
		r := &in.record
		size := min(int(r.Bytes), len(c.segment.arrivals)-recordLen)
		if cap(in.part) < size {
			in.part = make([]byte, size)
		}
		in.part = in.part[:size]
		c.copyOut(in.part, in.read+recordLen)
		if !c.takeOrPark(r, in.part) {
			break
		}
		in.read += spanOf(size)
	}
	if in.operated {
		in.operated = false
		in.to.Settle()
	}
	if n > 0 {
		h.read.Swap(in.read)
		if h.hostWaits.Load() != 0 && h.hostWaits.Swap(0) != 0 {
			c.doorbell.Ring()
		}
	}
	return n + waited
}

// copyOut copies from a position of the ring.
func (c *GuestRing) copyOut(to []byte, at uint64) {
	ring := c.segment.arrivals
	n := copy(to, ring[at&uint64(len(ring)-1):])
	copy(to[n:], ring)
}

// takeRecord takes one record, and returns false if there is no room for what it brings.
func (c *GuestRing) takeRecord(r *record, part []byte) bool {
	switch r.Kind {
	case kindEvent:
		return c.takeEvent(r)
	case kindOperate:
		return c.operate(r, part)
	case kindRequest:
		return c.ask(r, part)
	case kindRecall:
		if s := c.in.called.sessions[r.Session]; s != nil {
			s.Recall()
		}
		return true
	case kindEnd:
		c.endCalled(r.Session)
	}
	s := c.session(r)
	if s == nil {
		return true // the endpoint has been closed
	}
	switch r.Kind {
	case kindEnd:
		c.endSession(s)
		return true
	case kindAnnounce:
		c.announced(s, r)
		return true
	}
	s.Begin()
	defer s.End()
	switch r.Kind {
	case kindBegin:
		c.begin(s, r, part)
	case kindPart:
		s.Put(part)
	case kindDrop:
		s.Drop()
	}
	return true
}

// session returns the session of a record, or nil if there is no endpoint for it.
func (c *GuestRing) session(r *record) *incomingSession {
	s := c.in.sessions[r.Session]
	if s != nil || r.Kind == kindEnd {
		return s
	}
	in, identity := c.in.to.Inflow(r.Endpoint, r.addr())
	if in == nil {
		return nil
	}
	s = &incomingSession{Inflow: in, number: r.Session, endpoint: r.Endpoint, identity: identity}
	c.in.sessions[r.Session] = s
	return s
}

// endSession ends a session: its message that is not whole never will be.
func (c *GuestRing) endSession(s *incomingSession) {
	c.unwait(s)
	c.freeValues(s)
	s.Close()
	delete(c.in.sessions, s.number)
}

// begin takes the first part of a message, which was admitted or comes by credit.
func (c *GuestRing) begin(s *incomingSession, r *record, part []byte) {
	m := &c.in.message
	r.message(m)
	leased := r.Flags&flagMatched == 0
	s.admitted = false
	if leased {
		s.AdmitLeased(m)
	}
	if m.Atomic.Form == 0 {
		s.Put(part)
	} else {
		c.freeValues(s)
		m.Part = part
		if m.Atomic.Form == wire.VerbCompare {
			m.Part, m.Atomic.Compare = part[:len(part)/2], part[len(part)/2:]
		}
		s.Combine(m, c.found(m))
	}
	if leased {
		c.grant(s, false)
	}
}

// found returns scratch memory for the values that an atomic finds, nil if it returns
// none: the host has them already.
func (c *GuestRing) found(m *wire.Message) []byte {
	if m.Atomic.Form == wire.VerbAtomic {
		return nil
	}
	if uint64(cap(c.in.values)) < m.Length {
		c.in.values = make([]byte, m.Length)
	}
	return c.in.values[:m.Length]
}

// message puts what a record says of a message into m.
func (r *record) message(m *wire.Message) {
	*m = wire.Message{Begins: true, Length: r.Length, Tag: r.Tag, Data: r.Data, Source: r.Source,
		Tagged: r.Flags&flagTagged != 0, HasData: r.Flags&flagData != 0, Match: r.Flags&flagMatch != 0}
	m.Atomic = wire.TaggedAtomic{Form: wire.Verb(r.Form), Op: r.Op, Datatype: r.Datatype, Count: r.Count,
		Offset: r.Offset}
}

func (c *GuestRing) takeEvent(r *record) bool {
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

// closeSessions ends the sessions of peers. What has arrived by now is taken, as their
// senders count on it; it is at most what the ring holds.
func (c *GuestRing) closeSessions() {
	if c.in.to == nil {
		return
	}
	for range len(c.segment.arrivals) / recordLen {
		if c.arrive() == 0 {
			break
		}
	}
	c.overtake()
	for _, s := range c.in.sessions {
		c.endSession(s)
	}
	for number := range c.in.called.sessions {
		c.endCalled(number)
	}
	c.in.to.Lost()
}
