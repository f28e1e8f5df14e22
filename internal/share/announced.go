// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The guest's side of Credit: messages that are announced wait here, outside the ring, so
// that nothing else waits for them.

// Room is called when messages which wait may find room now. Any goroutine may call it;
// the engine has to be woken afterwards.
func (c *GuestRing) Room() { c.in.room.Store(true) }

// CatchUp takes everything that had arrived before the call, but for events for which
// there is no room, and what is behind them. Engine's thread.
func (c *GuestRing) CatchUp() {
	if !c.alive || c.in.to == nil {
		return
	}
	for end := c.segment.h.arrived.Load(); int64(end-c.in.read) > 0; {
		if c.arrive() == 0 {
			break
		}
	}
	c.showAdmissions()
}

// showAdmissions lets the host see what it was told of the room for messages.
func (c *GuestRing) showAdmissions() {
	if c.noted {
		c.noted = false
		c.Flush()
	}
}

// announced takes the announcement of a message, and credit that comes back with it. If
// that is all that is new, the host may not have heard yet that the message is admitted.
func (c *GuestRing) announced(s *incomingSession, r *record) {
	s.Begin()
	s.Reclaim(r.Unused)
	s.End()
	if s.admitted {
		return
	}
	if !s.waits {
		s.waits = true
		r.message(&s.message)
		c.in.waiting = append(c.in.waiting, s)
	}
	if c.admit(s) {
		c.unwait(s)
	}
}

func (c *GuestRing) unwait(s *incomingSession) {
	if s.waits {
		s.waits = false
		c.in.waiting = slices.DeleteFunc(c.in.waiting, func(x *incomingSession) bool { return x == s })
	}
}

// retry admits the messages for which there is room by now.
func (c *GuestRing) retry() {
	if !c.in.room.Load() && !c.in.cramped {
		return
	}
	c.in.room.Store(false) // before looking: a goroutine that makes room sets it afterwards
	c.in.cramped = false
	c.in.waiting = slices.DeleteFunc(c.in.waiting, func(s *incomingSession) bool {
		s.waits = !c.admit(s)
		return !s.waits
	})
}

// admit tells the host that the message may come that a session has announced, if there
// is room for it.
func (c *GuestRing) admit(s *incomingSession) bool {
	m := &s.message
	var values []byte
	if f := m.Atomic.Form; f != 0 && f != wire.VerbAtomic {
		if !c.take(&s.values, int(m.Length)) {
			c.in.cramped = true
			return false
		}
		values = c.segment.arena[s.values.at:][:m.Length]
	}
	x := Admission{Values: uint64(s.values.at), Length: uint32(len(values))}
	s.Begin()
	ok := s.Admit(m)
	if ok && m.Atomic.Form != 0 && m.Match {
		x.Status = s.Find(values)
	}
	if ok {
		x.lease(s, true)
	}
	s.End()
	if !ok {
		c.freeValues(s)
		return false
	}
	s.admitted = true
	c.tellAdmission(s.number, &x)
	return true
}

// grant gives the host more credit, if that is worth it. It is called between Begin and
// End.
func (c *GuestRing) grant(s *incomingSession, all bool) {
	var x Admission
	if x.lease(s, all); x.Room != (matching.Room{}) {
		c.tellAdmission(0, &x)
	}
}

// lease leases room to the host, if it may have credit for the endpoint.
func (x *Admission) lease(s *incomingSession, all bool) {
	if s.identity != 0 {
		x.Endpoint, x.Identity, x.Room = s.endpoint, s.identity, s.Lease(all)
	}
}

// freeValues gives back the part of the arena that has the values of an atomic.
func (c *GuestRing) freeValues(s *incomingSession) {
	if s.values.len > 0 {
		c.space.put(uint64(s.values.at), s.values.len)
		s.values = block{}
	}
}

func (c *GuestRing) tellAdmission(session uint64, x *Admission) {
	e := engine.Entry{Verb: VerbAdmit, Key: session}
	*admissionOf(&e) = *x
	c.note(e)
	c.noted = true
}
