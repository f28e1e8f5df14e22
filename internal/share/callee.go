// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"fmt"
	"math/bits"
	"slices"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// callee has a function of the guest answer the calls of one session. It implements
// session.MobileCallee. A request goes through the ring of arrivals, and the guest
// replies with an entry (VerbReply). The Arrivals guard it.
type callee struct {
	a     *Arrivals
	told  func() // the engine, that a call has ended
	head  record
	known bool   // the guest has had a record of the session
	away  uint64 // bit psn%64: requests that the guest has
	asked [session.MaxWindow]request

	ended []*reply // the oldest first
	spare []*reply
}

// mostAway bounds the requests that a guest has: each holds a buffer of the host until it
// is answered.
const mostAway = 1 << 12

// request is what is known of a request that the guest has.
type request struct {
	PSN  uint32
	Most uint32 // bytes of the reply that the initiator has room for
}

// reply is how a call has ended.
type reply struct {
	psn    uint32
	status wire.Status
	said   wire.Reply
}

// NewCallee returns what has a function of the guest answer the calls of a session that
// was begun by a node at an address with an endpoint of the guest. told tells the engine
// that a call has ended.
func (a *Arrivals) NewCallee(endpoint uint16, from wire.Addr, told func()) session.Callee {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions++
	c := &callee{a: a, told: told, head: record{Endpoint: endpoint, Session: a.sessions}}
	c.head.from(from)
	a.callees[a.sessions] = c
	return c
}

// Ask implements session.Callee.
func (c *callee) Ask(psn uint32, x *wire.Call) wire.Status {
	a := c.a
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.ended:
		return wire.StatusNotExecuted
	case a.away == mostAway || !a.fits(spanOf(len(x.Request))):
		return wire.StatusNoRoom
	}
	a.away++
	c.away |= 1 << (psn % session.MaxWindow)
	c.asked[psn%session.MaxWindow] = request{psn, x.Most}
	r := c.head
	r.Kind, r.Tag, r.Length, r.Source = kindRequest, uint64(psn), uint64(x.Most), x.Source
	c.known = true
	a.put(&r, x.Request, nil)
	a.show()
	return wire.StatusOK
}

// Answered implements session.Callee.
func (c *callee) Answered() (psn uint32, r *wire.Reply, status wire.Status, ok bool) {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	if len(c.ended) == 0 {
		return 0, nil, 0, false
	}
	e := c.ended[0]
	return e.psn, &e.said, e.status, true
}

// Drop implements session.Callee.
func (c *callee) Drop() {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	c.spare = append(c.spare, c.ended[0])
	c.ended = slices.Delete(c.ended, 0, 1)
}

// Recall implements session.Callee. The guest replies to what it recalls.
func (c *callee) Recall() { c.tell(kindRecall) }

// Close implements session.Callee. The guest is told only of a session that it knows of.
func (c *callee) Close() {
	c.tell(kindEnd)
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	if c.a.callees[c.head.Session] == c {
		delete(c.a.callees, c.head.Session)
		c.a.away -= bits.OnesCount64(c.away)
	}
}

// tell writes a record without bytes, now or when there is room.
func (c *callee) tell(kind uint8) {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	if !c.known || c.a.ended || kind == kindRecall && c.away == 0 {
		return
	}
	r := c.head
	r.Kind = kind
	c.a.late = append(c.a.late, r)
	c.a.show()
}

// Reply takes the reply of a guest to a request: with any status but OK its function
// never had the request. An error means that the guest has broken a rule.
func (a *Arrivals) Reply(number, psn uint64, status wire.Status, r *wire.Reply) error {
	c, err := a.reply(number, psn, status, r)
	if c != nil {
		c.told()
	}
	return err
}

// reply returns the callee whose call has ended, nil if its session has ended before.
func (a *Arrivals) reply(number, psn uint64, status wire.Status, r *wire.Reply) (*callee, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.callees[number]
	if c == nil && number > 0 && number <= a.sessions {
		return nil, nil
	}
	if c == nil {
		return nil, fmt.Errorf("a reply in session %d: want one of the %d that there were", number, a.sessions)
	}
	i := psn % session.MaxWindow
	if c.away&(1<<i) == 0 || uint64(c.asked[i].PSN) != psn {
		return nil, fmt.Errorf("a reply to request %d of session %d: the guest does not have it", psn, number)
	}
	if err := c.asked[i].check(status, r); err != nil {
		return nil, err
	}
	c.away &^= 1 << i
	a.away--
	e := c.take()
	e.psn, e.status = uint32(psn), status
	e.said = wire.Reply{Kind: r.Kind, Length: r.Length, Bytes: append(e.said.Bytes[:0], r.Bytes...)}
	c.ended = append(c.ended, e)
	return c, nil
}

// take returns a reply to fill in.
func (c *callee) take() *reply {
	n := len(c.spare)
	if n == 0 {
		return new(reply)
	}
	e := c.spare[n-1]
	c.spare = c.spare[:n-1]
	return e
}

// check returns what is wrong with a reply to the request.
func (q request) check(status wire.Status, r *wire.Reply) error {
	switch status {
	case wire.StatusOK, wire.StatusNotExecuted, wire.StatusNoRoom:
	default:
		return fmt.Errorf("a reply with %v: want what a request can end with", status)
	}
	switch {
	case len(r.Bytes) > int(q.Most) || len(r.Bytes) > int(r.Length):
		return fmt.Errorf("a reply of %d bytes, %d of which have come: want at most %d", r.Length, len(r.Bytes), q.Most)
	case r.Kind > wire.ReplyPanic:
		return fmt.Errorf("a reply of kind %d: want one of those that there are", r.Kind)
	}
	return nil
}

// CalleeState is what a callee leaves to that of another host.
type CalleeState struct {
	Number   uint64
	Endpoint uint16
	Known    bool
	Asked    []request
}

// exportCallees returns all of them. Replies have been taken. a.mu is held.
func (a *Arrivals) exportCallees() (all []CalleeState) {
	for number, c := range a.callees {
		s := CalleeState{Number: number, Endpoint: c.head.Endpoint, Known: c.known}
		for i, q := range c.asked {
			if c.away&(1<<i) != 0 {
				s.Asked = append(s.Asked, q)
			}
		}
		all = append(all, s)
	}
	return all
}

// restoreCallees makes callees whose sessions are still to come. a.mu is held.
func (a *Arrivals) restoreCallees(all []CalleeState) {
	for _, s := range all {
		c := &callee{a: a, told: func() {}, known: s.Known, head: record{Endpoint: s.Endpoint, Session: s.Number}}
		for _, q := range s.Asked {
			c.away |= 1 << (q.PSN % session.MaxWindow)
			c.asked[q.PSN%session.MaxWindow] = q
		}
		a.away += len(s.Asked)
		a.callees[s.Number] = c
	}
}

// State implements session.MobileCallee.
func (c *callee) State() uint64 { return c.head.Session }

// Restore implements session.MobileCallee. Replies that came before are here.
func (c *callee) Restore(number uint64) (asked uint64) {
	asked = c.restore(number)
	c.told()
	return asked
}

func (c *callee) restore(number uint64) (asked uint64) {
	c.a.mu.Lock()
	defer c.a.mu.Unlock()
	was := c.a.callees[number]
	if was == nil || was.head.Endpoint != c.head.Endpoint {
		return 0
	}
	delete(c.a.callees, c.head.Session)
	c.head.Session, c.known, c.away, c.asked, c.ended = number, was.known, was.away, was.asked, was.ended
	c.a.callees[number] = c
	for _, e := range c.ended {
		asked |= 1 << (e.psn % session.MaxWindow)
	}
	return asked | c.away
}

// Detach implements session.MobileCallee: Export has the requests.
func (c *callee) Detach() {}
