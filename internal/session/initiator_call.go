// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// A call is answered when the function at the target returns, perhaps long after those
// that were sent later. So in a session that has calls a later answer is no sign that an
// earlier request is lost, if the target has said that the request is there. Its answer
// may be lost, though: such requests are sent again at a pace that falls.

// learnKept notes which requests the target has, as the sack of a frame, or its flag BUSY
// says.
func (s *Initiator) learnKept(h *wire.Header) {
	if h.Flags&wire.FlagBusy != 0 && s.Waits(h.Ack+1) {
		s.kept |= 1 << ((h.Ack + 1) & slotMask)
	}
	for bits, psn := h.Sack, h.Ack+2; bits != 0; bits, psn = bits>>1, psn+1 {
		if bits&1 != 0 && s.Waits(psn) {
			s.kept |= 1 << (psn & slotMask)
		}
	}
}

// hasKept reports whether the target has said that it has the request.
func (s *Initiator) hasKept(psn uint32) bool { return s.kept&(1<<(psn&slotMask)) != 0 }

// askKept sends a request again that the target has, if it is time to ask for its answer.
func (s *Initiator) askKept(now int64, psn uint32) {
	r := &s.reqs[psn&slotMask]
	again := rttEstimator{srtt: s.rtt.srtt, rttvar: s.rtt.rttvar, backoff: uint(r.sends)}
	if now-r.sentAt >= again.rto(s.cfg) {
		s.toSend |= 1 << (psn & slotMask)
	}
}

// askAllKept is askKept for all of them.
func (s *Initiator) askAllKept(now int64) {
	for psn := s.una; s.kept != 0 && psn != s.next; psn++ {
		if s.hasKept(psn) {
			s.askKept(now, psn)
		}
	}
}

// called reports whether a request that is about to be forgotten is a call: its round
// trip is the function's as well, and says nothing of queues on the way.
func (s *Initiator) called(r *request) bool {
	return s.shared&wire.FeatureCalls != 0 && wire.IsCall(r.buf)
}
