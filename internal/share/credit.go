// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The guest decides which messages it has room for, as an endpoint does that is in the
// process of its interface. That it need not be asked for each of them, it leases room
// for messages that are held to the host: the credit of the endpoint. A message for which
// the credit does not suffice is announced, and the credit given back with it, so that
// the guest decides with all the room that it has. When it admits the message, it leases
// what is left.
//
// A tagged atomic that has to tell how it ended is announced always. The guest finds the
// receive, tells whether the atomic fits, and puts the values that it will find into the
// arena. The receive is bound from then on, and its buffer the fabric's: so the host can
// answer at the moment when it hands the operation over, and either both happen or
// neither. The guest combines.

// Credit is the room of an endpoint of a guest, as its host knows it. It is guarded by
// the guest's Arrivals.
type Credit struct {
	room    matching.Room
	waiting int // messages that are announced for want of room
}

// Admission is what a guest says with VerbAdmit, in place of the operands of the entry.
// Its session is in Entry.Key, or 0: then it is about the room alone.
type Admission struct {
	Identity uint64        // of the endpoint: see Endpoint.Origin
	Values   uint64        // where in the arena the values are, of an atomic that returns them
	Length   uint32        // of these, bytes
	Endpoint uint16        // that has more credit
	Status   wire.Status   // how a tagged atomic will end
	_        [1]byte       //
	Room     matching.Room // that it has more
}

// asked is what the guest has been asked about the next message of a session.
//
// The frame with the message is kept, or comes again. A peer could then send another
// message in its place, for which the guest has matched or found nothing. So what is
// announced is compared with what comes: another message waits until the session ends.
type asked struct {
	is       bool // the message is announced
	as       record
	forRoom  bool // for want of room; otherwise it must be matched
	admitted bool
	returns  uint32      // bytes that the guest has to tell before it combines
	status   wire.Status // that it has told
	at       uint64      // where values are in the arena
	values   []byte      // a part of the arena
}

// announce writes the announcement of a message. For want of room it gives the credit
// back.
func (in *inflow) announce(r *record, m *wire.Message) {
	in.asked = asked{is: true, as: *r, forRoom: !m.Match}
	if f := m.Atomic.Form; f != 0 && f != wire.VerbAtomic {
		in.asked.returns = uint32(m.Length)
	}
	r.Kind = kindAnnounce
	if m.Match {
		r.Flags |= flagMatch
	} else {
		in.credit.waiting++
		r.Unused, in.credit.room = in.credit.room, matching.Room{}
	}
	in.write(r, nil, nil)
}

// giveBack announces a message again if there is credit that the guest has given before
// it knew that the message waits for room.
func (in *inflow) giveBack(r *record) {
	if !in.asked.forRoom || in.credit.room == (matching.Room{}) {
		return
	}
	r.Kind = kindAnnounce
	r.Unused, in.credit.room = in.credit.room, matching.Room{}
	in.write(r, nil, nil)
}

// settle records that the message no longer waits.
func (x *asked) settle(c *Credit) {
	if x.is && x.forRoom && !x.admitted {
		c.waiting--
	}
	x.forRoom = false
}

// Admit takes what the guest said of a session. An impossible admission is passed over:
// its message keeps waiting.
func (a *Arrivals) Admit(session uint64, x *Admission) {
	a.mu.Lock()
	defer a.mu.Unlock()
	in := a.open[session]
	if in == nil || !in.asked.is || in.asked.admitted {
		return
	}
	switch x.Status {
	case wire.StatusOK, wire.StatusOutOfBounds, wire.StatusMisaligned, wire.StatusUnsupported:
	default:
		return
	}
	values, ok := partOf(a.segment.arena, x.Values, uint64(in.asked.returns))
	if !ok || in.asked.returns != x.Length {
		return
	}
	in.asked.settle(in.credit)
	in.asked.admitted, in.asked.status, in.asked.at, in.asked.values = true, x.Status, x.Values, values
	a.refused.Store(true)
}

// Grant adds to the credit of an endpoint what the guest has given.
func (a *Arrivals) Grant(c *Credit, room matching.Room) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c.room.Add(room)
	if c.waiting > 0 { // it is given back
		a.refused.Store(true)
	}
}

// Room is what the credit consists of, for another host.
func (a *Arrivals) Room(c *Credit) matching.Room {
	a.mu.Lock()
	defer a.mu.Unlock()
	return c.room
}

// note does what an entry says that has no completion.
func (f *HostRing) note(x *engine.Entry, p *Target) {
	switch {
	case x.Verb == VerbForget:
		f.close(p)
	case x.Verb == VerbLeave:
		f.leave(x.Key)
	case f.admitted != nil:
		f.admitted(x.Key, admissionOf(x))
	}
}
