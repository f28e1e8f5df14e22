// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// Frames of tickets are outside the order of the session: they may get lost, or come
// again. The initiator numbers them, so that the target knows a copy. Either side sends
// them only when it may, and writes as many as fit of those that next returns.

// HearTickets takes a frame of tickets of the initiator, and returns false if it is a
// copy.
func (t *Target) HearTickets(now int64, h *wire.Header) bool {
	if wire.Diff(h.PSN, t.asks) <= 0 {
		return false
	}
	t.asks, t.heardAt = h.PSN, now
	return true
}

// EmitTickets writes a frame of tickets to the initiator, and returns its length.
func (t *Target) EmitTickets(b []byte, next func() (wire.Ticket, bool)) int {
	h := wire.Header{Type: wire.Tickets, Session: t.remote, Epoch: t.epoch, Lane: t.local.Lane()}
	return putTickets(b, &h, t.payload, next)
}

// Answered reports whether no answer is due to a request that has run.
func (t *Target) Answered(psn uint32) bool {
	return int32(psn-t.freed) <= 0 || t.toSend&(1<<(psn&slotMask)) == 0
}

// EmitTickets writes a frame of tickets to the target, and returns its length.
func (s *Initiator) EmitTickets(b []byte, next func() (wire.Ticket, bool)) int {
	h := wire.Header{Type: wire.Tickets, Session: s.remote, Epoch: s.epoch, Lane: s.p.Local.Lane(), PSN: s.ticketed + 1}
	n := putTickets(b, &h, s.payload, next)
	if n > 0 {
		s.ticketed++
	}
	return n
}

// Tells reports whether a frame of tickets is one of the present session.
func (s *Initiator) Tells(h *wire.Header) bool {
	return s.state == Open && h.Epoch == s.epoch && s.shared&wire.FeatureWaits != 0
}

func putTickets(b []byte, h *wire.Header, room int, next func() (wire.Ticket, bool)) int {
	n := wire.HeaderLen
	for n+wire.TicketLen <= wire.HeaderLen+room {
		t, ok := next()
		if !ok {
			break
		}
		t.Put(b[n:])
		n += wire.TicketLen
	}
	if n == wire.HeaderLen {
		return 0
	}
	h.Put(b)
	return n
}
