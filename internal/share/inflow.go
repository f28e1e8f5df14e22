// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// inflow is the messages of one session, on their way to the guest. It implements
// session.Inflow.
type inflow struct {
	a       *Arrivals
	credit  *Credit // of the endpoint
	head    record  // of this session
	has     uint64
	lacks   uint64
	message record // that was admitted, whose first part follows
	begins  bool
	told    bool // the guest has had a record of the session
	asked   asked
}

// NewInflow returns the messages that come from an address to an endpoint of the guest,
// which has a credit.
func (a *Arrivals) NewInflow(endpoint uint16, credit *Credit, from wire.Addr) session.Inflow {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions++
	in := &inflow{a: a, credit: credit, head: record{Endpoint: endpoint, Session: a.sessions}}
	in.head.from(from)
	a.open[a.sessions] = in
	return in
}

func (in *inflow) InProgress() (has, lacks uint64) { return in.has, in.lacks }
func (in *inflow) Begin()                          { in.a.mu.Lock() }

func (in *inflow) End() {
	in.a.show()
	in.a.mu.Unlock()
}

// Admit implements session.Inflow. A message that must be matched, or for which there is
// no credit, is announced, and comes when the guest has admitted it.
func (in *inflow) Admit(m *wire.Message) bool {
	if !in.a.fits(spanOf(len(m.Part) + len(m.Atomic.Compare))) {
		return false
	}
	r := in.head
	r.describe(m)
	switch {
	case in.asked.is && in.asked.as != r:
		return false
	case in.asked.admitted:
		r.Flags |= flagMatched
	case in.asked.is:
		in.giveBack(&r)
		return false
	case m.Match || !in.credit.room.Spend(m.Length):
		in.announce(&r, m)
		return false
	}
	in.message, in.begins, in.has, in.lacks = r, true, 0, m.Length
	return true
}

// describe makes the record that of the beginning of a message.
func (r *record) describe(m *wire.Message) {
	r.Kind, r.Length, r.Tag, r.Data, r.Source = kindBegin, m.Length, m.Tag, m.Data, m.Source
	if m.Tagged {
		r.Flags |= flagTagged
	}
	if m.HasData {
		r.Flags |= flagData
	}
	a := &m.Atomic
	r.Form, r.Op, r.Datatype, r.Count, r.Offset = uint8(a.Form), a.Op, a.Datatype, a.Count, a.Offset
}

// Fits implements session.Inflow.
func (in *inflow) Fits(n int) bool { return in.a.fits(spanOf(n)) }

// Put implements session.Inflow.
func (in *inflow) Put(part []byte) {
	part = part[:min(uint64(len(part)), in.lacks)]
	r := in.head
	if r.Kind = kindPart; in.begins {
		r = in.take()
	}
	in.has, in.lacks = in.has+uint64(len(part)), in.lacks-uint64(len(part))
	if in.lacks == 0 {
		in.has = 0
	}
	in.write(&r, part, nil)
}

// take returns the record of the message that was admitted.
func (in *inflow) take() record {
	in.begins = false
	if in.asked.is { // seldom, and it is large
		in.asked = asked{}
	}
	return in.message
}

func (in *inflow) write(r *record, part, more []byte) {
	if !in.a.ended {
		in.told = true
		in.a.put(r, part, more)
	}
}

// Combine implements session.Inflow. The guest combines: it has told how that will end,
// and what the elements of the receive hold until then, if the sender wants to know.
func (in *inflow) Combine(m *wire.Message, result []byte) wire.Status {
	status := in.asked.status
	if status == wire.StatusOK {
		copy(result, in.asked.values)
	}
	r := in.take()
	in.has, in.lacks = 0, 0
	in.write(&r, m.Part, m.Atomic.Compare)
	return status
}

// Drop implements session.Inflow.
func (in *inflow) Drop() {
	if in.lacks > 0 {
		in.has, in.lacks = 0, 0
		in.note(kindDrop)
	}
}

// note writes a record without bytes, now or when there is room.
func (in *inflow) note(kind uint8) {
	r := in.head
	r.Kind = kind
	in.a.late = append(in.a.late, r)
}

// Close implements session.Inflow. The guest is told of the end only of a session that it
// knows of: otherwise peers that come and go would fill memory while it does not read.
func (in *inflow) Close() {
	in.a.mu.Lock()
	defer in.a.mu.Unlock()
	if in.a.open[in.head.Session] != in {
		return
	}
	in.asked.settle(in.credit)
	if in.told && !in.a.ended {
		in.note(kindEnd)
		in.a.show()
	}
	delete(in.a.open, in.head.Session)
}
