// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// Two endpoints that send each other messages have two sessions. A request of the one can
// carry an ack of the other, its rider, which saves a packet.

// Rider returns the ack that is due, and takes it for sent, if it is the only thing that
// is due and says no more than that every request has succeeded without results. The ack
// of a duplicate never rides: if riders do not arrive, frames of their own must.
func (t *Target) Rider() (wire.Rider, bool) {
	if t.toSend == 0 || t.infoDue || t.nakDue || t.echoDue || t.resetDue != 0 || t.waits || t.frozen ||
		t.heldMask|t.ahead|t.away != 0 {
		return wire.Rider{}, false
	}
	for psn := t.freed + 1; psn != t.expected; psn++ {
		if t.cache[psn&slotMask].buf != nil {
			return wire.Rider{}, false
		}
	}
	t.toSend = 0
	return wire.Rider{Session: t.remote, PSN: t.expected - 1}, true
}

// Carries reports whether the next frame that Emit writes can carry a rider.
func (s *Initiator) Carries() bool {
	return s.state == Open && s.toSend != 0 && s.shared&wire.FeatureRiders != 0
}

// Carry makes the next frame carry a rider; Carries has been asked.
func (s *Initiator) Carry(r wire.Rider) { s.rider, s.rides = r, true }

// Ridden takes an ack that came as a rider, of all requests up to psn.
func (s *Initiator) Ridden(now int64, psn uint32) Event {
	switch {
	case s.state != Open:
		return Event{Kind: Nothing}
	case !s.acknowledges(psn):
		return Event{Kind: Refused}
	}
	s.attend(now)
	s.waited = false
	s.hear(now, false, false)
	if wire.Diff(psn, s.una) < 0 {
		return Event{Kind: Nothing}
	}
	return Event{Kind: Succeeded, First: s.una, Last: psn}
}

// acknowledges reports whether a target can have told that everything up to psn has run:
// it cannot have executed what was not sent.
func (s *Initiator) acknowledges(psn uint32) bool {
	return wire.Diff(psn, s.next) < 0 && wire.Diff(psn, s.una-1-MaxWindow) >= 0
}
