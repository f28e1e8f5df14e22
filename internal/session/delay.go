// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// A stream of requests without results needs no ack for each of them: an ack serves all
// requests before it. The initiator knows what follows, so it decides: it marks requests
// whose ack may be delayed, since others follow at once. The last one of what it has is
// never marked, so its ack is as early as ever.

// mostPerAck is the most requests that one ack serves.
const mostPerAck = 8

// Follow says whether the caller has more requests, which nothing but the window holds
// up.
func (s *Initiator) Follow(more bool) { s.follows = more }

// perAck returns how many requests one ack serves. Acks are due at least twice in a
// window, or the window would be shut until one comes.
func (s *Initiator) perAck() uint32 {
	window := min(s.window, s.credit)
	if !s.cfg.StaticWindow {
		window = min(window, s.cc.frames())
	}
	return min(mostPerAck, window/2)
}

// mayDelay reports whether the ack of a request that is sent now may be delayed.
func (s *Initiator) mayDelay(r *request) bool {
	if s.shared&wire.FeatureDelays == 0 {
		return false
	}
	s.delays++
	if r.sends > 0 || s.toSend == 0 && !s.follows || s.delays >= s.perAck() {
		s.delays = 0
		return false
	}
	return true
}

// Delays reports whether the answer to the frame that was received last may wait for the
// requests that follow it: the initiator says so, and nothing but a clean answer is due.
func (t *Target) Delays(h *wire.Header) bool {
	return h.Type == wire.Request && h.Flags&wire.FlagDelay != 0 && t.cache[h.PSN&slotMask].buf == nil &&
		!t.infoDue && !t.nakDue && !t.echoDue && t.resetDue == 0 && !t.waits && t.heldMask|t.ahead == 0
}
