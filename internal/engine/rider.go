// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/wire"

// A packet of its own costs an ack more than all else. So if a request goes to where the
// ack of messages is due, to the same engine of the same node, it carries that ack: see
// [wire.Rider]. One target is asked for it, that to which messages have come last, and
// therefore it is the last one to send.

// pickUp gives the ack of messages that is due to the frame that is sent next, if that
// can carry it.
func (c *conn) pickUp() {
	e := c.r.e
	t := e.messenger
	if t == nil || !t.listed || t.sealer != nil || !c.ini.Carries() || !t.reaches(c) {
		return
	}
	if r, ok := t.s.Rider(); ok {
		c.ini.Carry(r)
	}
}

// reaches reports whether frames of the initiator's session c arrive at the engine to
// which the answers of t go, from the address from which they come.
func (t *target) reaches(c *conn) bool {
	answers, requests := wire.SessionID(t.remote), wire.SessionID(c.atTarget().id)
	return answers.Queue() == requests.Queue() && answers.Lane() == requests.Lane() &&
		t.path.self == c.path.self && t.path.SameWay(&c.path.Template)
}

// lastToSend moves a target with something due to the end of the list of those that have.
func (e *Engine) lastToSend(t *target) {
	last := len(e.dirty) - 1
	for i, o := range e.dirty[:last] {
		if o == outgoing(t) {
			copy(e.dirty[i:], e.dirty[i+1:])
			e.dirty[last] = t
			return
		}
	}
}

// onRider takes the ack that the request at hand carries, and reports whether the session
// of the request has riders at all. The ack counts only if it comes from where the
// requests that it acknowledges go, and if no sealer vouches for their session.
func (t *target) onRider(r wire.Rider) bool {
	e := t.e
	if t.features&wire.FeatureRiders == 0 {
		e.count[Invalid]++
		return false
	}
	if c, ok := e.table.find(wire.SessionID(r.Session)).(*conn); ok && c.sealer == nil &&
		c.path.Answers(e.at.packet) && !e.putOff(c, r.PSN) {
		e.look()
		c.happened(c.ini.Ridden(e.now, r.PSN))
	}
	return true
}

// deferredAck is an ack that came as a rider and is to be taken when the answer to
// the message that it came with has left: see prompt.
type deferredAck struct {
	c   *conn // nil: there is none
	psn uint32
}

// putOff keeps an ack for later, if the caller answers messages at once. It returns false
// if the ack has to be taken now: room in the window should not come late.
func (e *Engine) putOff(c *conn, psn uint32) bool {
	if l := &e.deferredAck; !e.prompt.answered() || l.c != nil || c.ini.InFlight() >= busy {
		return false
	}
	e.deferredAck = deferredAck{c, psn}
	return true
}

// takeDeferredAck takes the ack that was put off. If its session ended meanwhile, the ack
// is void.
func (e *Engine) takeDeferredAck() {
	l := e.deferredAck
	e.deferredAck = deferredAck{}
	e.look()
	l.c.happened(l.c.ini.Ridden(e.now, l.psn))
	e.say()
}
