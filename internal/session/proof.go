// SPDX-License-Identifier: Apache-2.0

package session

import "github.com/xdpfab/xdpfab/internal/wire"

// The frames that two interfaces can send and receive do not pass where a switch between
// them takes shorter ones: it drops the others without a word. So a session whose frames
// would be longer than every path carries begins with a probe of full length, and the ack
// that echoes it is as long: until then no request is sent. After a long probe that
// nobody answers in time comes a short one. Its echo shows that the target lives, and
// that the length may be to blame. After a few of these the session goes on with frames
// that pass anywhere. While short probes get no echo either, the target or the path is
// silent, and nothing is known of lengths.

// proof is what an initiator knows of long frames.
type proof struct {
	length int    // of the probe and its echo, bytes; 0 unless the proof is under way
	since  uint32 // probes up to this one went another way, and prove nothing
	short  bool   // the latest probe is a short one
	misses int    // long probes without an echo, after which a short one had its own
	waits  uint   // probes that were not answered in time
}

// provable are the features that a proof takes.
const provable = wire.FeatureLongProbes | wire.FeatureEchoes

// proofMisses is how many long probes may get lost while short ones pass.
const proofMisses = 6

// proving reports whether it is still open how long frames may be.
func (p *proof) proving() bool { return p.length != 0 }

// prove begins the proof, for the present path. Without credit nothing is staged.
func (s *Initiator) prove(now int64, length int) {
	s.proof = proof{length: length, since: s.probes}
	s.credit = 0
	s.tryLength(now, false)
}

// tryLength makes the next probe of the proof due. Each that is not answered in time
// doubles the time of the next one, up to that between the probes of a watch.
func (s *Initiator) tryLength(now int64, short bool) {
	s.short, s.probeDue = short, true
	once := s.rtt.rto(s.cfg)
	s.timer = now + min(once<<min(s.waits, 16), max(once, s.probeEvery()))
}

// lengthen makes a probe of n bytes as long as what is to be proven, if it is to be long.
func (s *Initiator) lengthen(b []byte, n int) int {
	if !s.proving() || s.short {
		return n
	}
	clear(b[n:s.proof.length])
	return s.proof.length
}

// judgeLength looks whether the frame at hand ends the proof, and reports Narrowed if
// long frames do not pass. An echo is news if it is that of a later probe than those
// before. A long one proves the length in any case, though it may be late: it went the
// present way.
func (s *Initiator) judgeLength(now int64, h *wire.Header, payload int, news bool) Answer {
	if !s.proving() {
		return Nothing
	}
	credit := s.credit
	s.credit = 0
	switch {
	case h.Flags&wire.FlagEcho == 0 || wire.Diff(h.PSN, s.probes) > 0 || wire.Diff(h.PSN, s.since) <= 0:
	case wire.HeaderLen+payload >= s.proof.length:
		s.proof, s.timer, s.credit = proof{}, 0, credit
	case news && s.short && !s.probeDue && h.PSN == s.probes:
		if s.misses++; s.misses == proofMisses {
			s.proof, s.timer, s.credit = proof{}, 0, credit
			s.payload = s.p.Sure - wire.HeaderLen
			return Narrowed
		}
		s.tryLength(now, false)
	}
	return Nothing
}

// proveAgain sends a probe of the other length, or gives up a target that has answered
// neither.
func (s *Initiator) proveAgain(now int64) Event {
	if now-s.heardAt >= int64(s.cfg.GiveUp) {
		return s.end(GaveUp)
	}
	s.waits++
	s.tryLength(now, !s.short)
	return Event{Kind: Nothing}
}

// unheard reports whether neither long nor short probes were answered of late.
func (p *proof) unheard() bool { return p.proving() && int(p.waits)-p.misses >= 3 }
