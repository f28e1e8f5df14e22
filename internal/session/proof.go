// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// The frames that two interfaces can send and receive do not pass where a switch between
// them takes shorter ones: it drops the others without a word. So a session whose frames
// would be longer than every path carries begins with a probe of full length, and the ack
// that echoes it is as long: until then no request is sent. If none of a few comes back,
// the session goes on with frames that pass anywhere, which the same target answers.

// proof is what an initiator knows of long frames.
type proof struct {
	length int // of the probe and its echo, bytes; 0 unless the proof is under way
	tries  int // probes that were not answered
}

// provable are the features that a proof takes.
const provable = wire.FeatureLongProbes | wire.FeatureEchoes

// proofTries is how many probes of full length may get lost. Their timeouts double, from
// the floor of the retransmission timeout on.
const proofTries = 7

// proving reports whether it is still open how long frames may be.
func (p *proof) proving() bool { return p.length != 0 }

// prove begins the proof. Without credit nothing is staged.
func (s *Initiator) prove(now int64, length int) {
	s.proof = proof{length: length}
	s.credit, s.probeDue, s.timer = 0, true, now+s.rtt.rto(s.cfg)
}

// lengthen makes a probe of n bytes as long as what is to be proven.
func (s *Initiator) lengthen(b []byte, n int) int {
	if !s.proving() {
		return n
	}
	clear(b[n:s.proof.length])
	return s.proof.length
}

// proven ends the proof, if the frame at hand is the echo of a probe, with so many bytes
// of payload.
func (s *Initiator) proven(echo bool, payload int) {
	switch {
	case !s.proving():
	case echo && wire.HeaderLen+payload >= s.proof.length:
		s.proof, s.timer = proof{}, 0
	default:
		s.credit = 0
	}
}

// proveAgain sends another probe, or concludes that long frames do not pass.
func (s *Initiator) proveAgain(now int64) Event {
	if s.tries++; s.tries < proofTries && now-s.heardAt < int64(s.cfg.GiveUp) {
		s.probeDue, s.timer = true, now+s.rtt.rto(s.cfg)<<s.tries
		return Event{Kind: Nothing}
	}
	s.proof, s.timer = proof{}, 0
	s.payload, s.credit = s.p.Sure-wire.HeaderLen, s.window
	return Event{Kind: Narrowed}
}
