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
//
// That conclusion may be wrong, or no longer right: a driver drops long packets for a
// while, a path changes. So a narrow session tries long probes alongside its requests,
// one at a time and ever more seldom, and has long frames from the first echo on. Of a
// probe without an echo it learns nothing.
//
// Only the proof before the first request can find a path narrow. By then no program but
// the target's process has the session (internal/residence), so both lengths are answered
// by the same side, or neither is.

// proof is what an initiator knows of long frames.
type proof struct {
	narrow Narrow
	length int    // of the probe and its echo, bytes; 0 once they pass, and if none is sent
	since  uint32 // probes up to this one went another way, and prove nothing
	short  bool   // the latest probe is a short one
	misses int    // long probes without an echo, after which a short one had its own
	waits  uint   // probes that were not answered in time
	tryDue bool   // the next probe of a narrow session
}

// Narrow is what is known of a path on which long frames did not pass. A session hands it
// to the next one with the same peer, which begins with short frames. The zero value
// knows nothing of the kind.
type Narrow struct {
	tryAt int64 // when a long probe is sent again, 0 if the path is not narrow
	pause int64 // from then to the one after it, nanoseconds
}

// Long frames are tried again after some seconds at first: virtio_net drops long packets
// until it has used up the receive buffers from before its XDP program. In the end it is
// as long as RFC 8899 keeps such knowledge.
const (
	firstTry = int64(2e9)
	lastTry  = int64(600e9)
)

// beginNarrow is called when long frames have not passed, or the path has changed since.
func beginNarrow(now int64) Narrow { return Narrow{tryAt: now + firstTry, pause: 2 * firstTry} }

// is reports whether long frames did not pass.
func (n *Narrow) is() bool { return n.tryAt != 0 }

// Narrow returns what the next session has to know of the path.
func (s *Initiator) Narrow() Narrow { return s.narrow }

// provable are the features that a proof takes.
const provable = wire.FeatureLongProbes | wire.FeatureEchoes

// proofMisses is how many long probes may get lost while short ones pass.
const proofMisses = 6

// proving reports whether it is still open how long frames may be.
func (p *proof) proving() bool { return p.length != 0 && !p.narrow.is() }

// measure begins a session whose frames have up to length bytes: with a proof if they may
// not pass, and with short ones if they did not of late.
func (s *Initiator) measure(now int64, length int) {
	if s.p.Sure == 0 || length <= s.p.Sure {
		return
	}
	able := s.shared&provable == provable
	switch {
	case s.narrow.is():
		s.payload = s.p.Sure - wire.HeaderLen
		if able {
			s.length = length
			s.tryAgain(now)
		}
	case able:
		s.prove(now, length)
	}
}

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

// emitProbe writes a probe, which is as long as what is to be proven if it is to be long.
func (s *Initiator) emitProbe(b []byte, long bool) int {
	s.probes++
	n := s.emitBare(b, wire.Probe, s.probes)
	if !long {
		return n
	}
	clear(b[n:s.length])
	return s.length
}

// judgeLength looks whether the current frame ends the proof, and reports Narrowed if
// long frames do not pass, and Widened if they do after all. An echo is news if it is
// that of a later probe than those before. A long one proves the length in any case,
// though it may be late: it went the present way.
func (s *Initiator) judgeLength(now int64, h *wire.Header, payload int, news bool) Answer {
	if s.length == 0 {
		return Nothing
	}
	echo := h.Flags&wire.FlagEcho != 0 && wire.Diff(h.PSN, s.probes) <= 0 && wire.Diff(h.PSN, s.since) > 0
	long := wire.HeaderLen+payload >= s.length
	if s.narrow.is() {
		if !echo || !long {
			return Nothing
		}
		s.payload, s.proof = s.length-wire.HeaderLen, proof{}
		return Widened
	}
	credit := s.credit
	s.credit = 0
	switch {
	case !echo:
	case long:
		s.proof, s.timer, s.credit = proof{}, 0, credit
	case news && s.short && !s.probeDue && h.PSN == s.probes:
		if s.misses++; s.misses == proofMisses {
			s.proof = proof{narrow: beginNarrow(now), length: s.length, since: s.since}
			s.payload, s.timer, s.credit = s.p.Sure-wire.HeaderLen, 0, credit
			return Narrowed
		}
		s.tryLength(now, false)
	}
	return Nothing
}

// tryAgain makes a long probe of a narrow session due, if it is time.
func (s *Initiator) tryAgain(now int64) {
	if at := s.triesAt(); at != 0 && now >= at {
		s.tryDue = true
		s.narrow = Narrow{tryAt: now + s.narrow.pause, pause: min(2*s.narrow.pause, lastTry)}
	}
}

// triesAt returns when a narrow session sends its next long probe, 0 for never.
func (s *Initiator) triesAt() int64 {
	if s.state != Open || s.length == 0 {
		return 0
	}
	return s.narrow.tryAt
}

// tryAnew has a narrow session try the path that it has from now on.
func (s *Initiator) tryAnew(now int64) {
	s.narrow, s.since, s.tryDue = beginNarrow(now), s.probes, s.triesAt() != 0
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
