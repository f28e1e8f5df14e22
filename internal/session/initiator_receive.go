// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Answer describes what a frame from the target means for the initiator's
// operations.
type Answer uint8

// The kinds of answer.
const (
	Nothing   Answer = iota // no operation is concerned
	Refused                 // the frame contradicts the session; counted, dropped
	Met                     // the target has answered the hello for the first time: see Life
	Opened                  // the session is open, requests may be staged
	Succeeded               // frames First..Last succeeded and have no results
	Responded               // frame First is answered by the payload
	Ended                   // the session is Closed; see State and Unanswered
	Outlived                // the session continues, but another process, Life, serves it now
	Narrowed                // long frames do not pass: the session goes on with those of Params.Sure
	Widened                 // they do after all: the session has them from now on
)

// Event is the verdict on a frame received by the initiator. For Succeeded the
// psns that still wait are those for which Retire returns true.
type Event struct {
	Kind        Answer
	First, Last uint32 // psn
	// Partly is how many records of request Next have run, if it is one of messages that
	// the target keeps until there is room. It goes with any kind.
	Partly uint8
	Next   uint32
	Life   uint64 // of the target's process; of Outlived alone
}

// Receive takes a frame that names this session. The caller has checked its CRC.
func (s *Initiator) Receive(now int64, h *wire.Header, payload []byte) Event {
	if h.Type == wire.HelloAck {
		return s.onHelloAck(now, h, payload)
	}
	if !s.live() {
		return Event{Kind: Refused}
	}
	if h.Epoch != s.epoch {
		return Event{Kind: Refused}
	}
	if h.Type == wire.Reset {
		return s.onReset(h, payload)
	}
	if !s.acknowledges(h.Ack) || h.Flags&wire.FlagEcho != 0 && s.shared&wire.FeatureEchoes == 0 {
		return Event{Kind: Refused}
	}
	s.attend(now)
	s.waited = h.Flags&wire.FlagBusy != 0
	s.credit = max(uint32(h.Credit), 1) // without any credit this side could never learn of more
	if s.shared&wire.FeatureCalls != 0 {
		s.learnKept(h)
	}
	s.onSack(now, h)
	shows := s.shows(h)
	verdict := s.judgeLength(now, h, len(payload), shows)
	s.hear(now, shows, h.Flags&wire.FlagBusy != 0 && s.Waits(h.Ack+1))
	ev := s.answer(h)
	if verdict != Nothing {
		ev.Kind = verdict // the frame is an echo, which says nothing else
	}
	if h.Flags&wire.FlagBusy != 0 && h.Type != wire.Response && s.Waits(h.Ack+1) {
		ev.Partly, ev.Next = h.Ops, h.Ack+1
	}
	return ev
}

// answer returns the verdict on a frame of an open session.
func (s *Initiator) answer(h *wire.Header) Event {
	switch h.Type {
	case wire.Response:
		if !s.Waits(h.PSN) {
			return Event{Kind: Nothing}
		}
		return Event{Kind: Responded, First: h.PSN, Last: h.PSN}
	case wire.Ack:
		if h.Flags&wire.FlagEcho != 0 {
			return Event{Kind: Nothing} // an empty run
		}
		n := wire.Diff(h.Ack, h.PSN) // last - first of the clean run; -1 when empty
		if n < 0 {
			return Event{Kind: Nothing}
		}
		if n >= MaxWindow {
			return Event{Kind: Refused}
		}
		return Event{Kind: Succeeded, First: h.PSN, Last: h.Ack}
	case wire.Nak:
		return Event{Kind: Nothing}
	}
	return Event{Kind: Refused}
}

// shows reports whether a frame shows that the target lives now. Any frame may be an old
// one that somebody sends again, but only a target that lives has the number of the
// latest probe. The other sign of life is the answer to a request: see Retire. Of a
// target that does not say which probe it answers, any frame is taken for one while
// nothing waits for an answer, or the target says that it waits itself.
func (s *Initiator) shows(h *wire.Header) bool {
	if s.shared&wire.FeatureEchoes == 0 {
		return s.wait == 0 || h.Flags&wire.FlagBusy != 0
	}
	if h.Flags&wire.FlagEcho == 0 || wire.Diff(h.PSN, s.echoed) <= 0 || wire.Diff(h.PSN, s.probes) > 0 {
		return false
	}
	s.echoed = h.PSN
	return true
}

// hear records whether a frame shows that the target lives, and whether the target waits
// for room for a message. That may take any time, and probes keep the session alive
// meanwhile. An old frame that is sent again does not end them.
func (s *Initiator) hear(now int64, lives, busy bool) {
	if lives {
		if s.heardAt = now; s.kept != 0 {
			s.workedAt = now // what waits for a function does not make the session doubtful
		}
	}
	switch {
	case busy:
		s.excused = s.rtt.backoff
		if !s.busy {
			s.busy, s.probeAt = true, now+s.probeEvery()
		}
	case lives || s.shared&wire.FeatureEchoes == 0:
		s.busy = false
	}
}

// Waits reports whether psn is in the window and has no answer yet.
func (s *Initiator) Waits(psn uint32) bool {
	return psn-s.una < s.next-s.una && s.wait&(1<<(psn&slotMask)) != 0
}

// Retire marks psn as answered, frees its buffer and opens the window. It
// returns false when psn did not wait for an answer (a duplicate).
func (s *Initiator) Retire(now int64, psn uint32) bool {
	if !s.Waits(psn) {
		return false
	}
	r := &s.reqs[psn&slotMask]
	switch {
	case r.sends != 1:
	case r.delays:
		s.cc.delayed()
	case s.waited, s.called(r): // for the target's program, and in no queue of the network
		s.rtt.sample(now - r.sentAt)
		s.cfg.RoundTrips.Add(now - r.sentAt)
		s.cc.waited(s.window)
	default:
		s.rtt.sample(now - r.sentAt)
		s.cfg.RoundTrips.Add(now - r.sentAt)
		s.cfg.Network.took(now - r.sentAt)
		s.cc.answered(now, max(now-r.sentAt, 1), s.cfg.Network.base(s.cfg.BaseRTT), s.window)
	}
	s.rtt.backoff = 0
	s.drop(psn)
	s.slide()
	s.workedAt, s.heardAt = max(s.workedAt, r.sentAt), now
	s.resendBefore(now, psn, r.first)
	if s.wait == 0 {
		s.timer = 0
		s.ackAt = now + int64(s.cfg.AckDelay)
	} else {
		s.timer = now + s.rtt.rto(s.cfg)
	}
	s.settled()
	return true
}

// resendBefore marks as lost every frame below psn that still waits although it
// was last sent before the answered frame was first sent: the target answers in
// psn order, or as frames arrive, so either the request or its answer is lost.
func (s *Initiator) resendBefore(now int64, psn uint32, order uint64) {
	for p := s.una; p != psn && wire.Diff(p, psn) < 0; p++ {
		if r := &s.reqs[p&slotMask]; s.wait&(1<<(p&slotMask)) != 0 && r.sends > 0 && r.last < order {
			if s.hasKept(p) {
				s.askKept(now, p)
				continue
			}
			s.lose(now, p)
		}
	}
}

// onSack marks as lost every frame that the target misses although it holds one
// that was sent later. The send order, not the psn, is compared, so that a
// retransmission gets its own round trip before it is judged.
func (s *Initiator) onSack(now int64, h *wire.Header) {
	if h.Sack == 0 {
		return
	}
	top := uint32(63-bits.LeadingZeros64(h.Sack)) + h.Ack + 2 // highest psn held
	if top-s.una >= s.next-s.una {
		return // never sent: ignore the whole map
	}
	newest := s.reqs[top&slotMask].first
	for psn := h.Ack + 1; psn != top; psn++ {
		held := psn != h.Ack+1 && h.Sack>>(psn-h.Ack-2)&1 != 0
		if held || s.hasKept(psn) || !s.Waits(psn) {
			continue
		}
		if r := &s.reqs[psn&slotMask]; r.sends > 0 && r.last < newest {
			s.lose(now, psn)
		}
	}
}

// lose marks a frame as lost, to be sent again.
func (s *Initiator) lose(now int64, psn uint32) {
	bit := uint64(1) << (psn & slotMask)
	if s.toSend&bit == 0 {
		s.toSend |= bit
		s.cc.lost(now, s.rtt.srtt)
	}
}

// maxChallenges is how many cookies a hello follows. One is enough, unless the
// target restarts meanwhile.
const maxChallenges = 8

func (s *Initiator) onHelloAck(now int64, h *wire.Header, payload []byte) Event {
	var a wire.HelloAckMsg
	if a.Parse(payload) != wire.ReasonOK {
		return Event{Kind: Refused}
	}
	if s.state == Open {
		return s.identified(&a)
	}
	if s.state != Connecting || a.Nonce != s.p.Nonce {
		return Event{Kind: Refused}
	}
	if a.Status == wire.HelloChallenge && a.Cookie == s.cookie {
		return Event{Kind: Nothing} // a duplicate: the answer is on its way
	}
	s.attend(now)
	if !s.helloAgain {
		s.cfg.Network.took(now - s.helloAt)
	}
	if s.life != 0 && s.life != a.Life {
		// Nothing shows which of the two lives is over, since answers may be late. The
		// hello of the next session has another nonce, so it is the present life that
		// answers it.
		return s.end(Outdated)
	}
	s.life, s.lasting = a.Life, a.Options.Resident
	switch a.Status {
	case wire.HelloChallenge: // no progress, so it does not put off giving up
		if s.challenges++; s.challenges > maxChallenges {
			return Event{Kind: Refused}
		}
		s.cookie, s.helloDue, s.helloAgain = a.Cookie, true, false
		s.timer = now + s.rtt.rto(s.cfg)
		return Event{Kind: Met}
	case wire.HelloAccepted:
		if !s.p.Key.proven(ofHelloAck, h, &a.Options, payload) {
			return s.end(Unproven)
		}
		frame := min(s.p.MaxFrame, int(a.MaxFrame))
		if frame < MinFrame || a.Window == 0 {
			return s.end(ProtocolError)
		}
		s.remote, s.epoch, s.resumed, s.lost = a.Session, h.Epoch, a.Resume, a.Lost
		s.shared = a.Features & s.asks()
		s.resumed.Early = s.early(h)
		s.payload = min(frame-wire.HeaderLen, s.pool.Size())
		s.window = min(uint32(s.cfg.Window), uint32(a.Window), MaxWindow)
		s.credit = s.window
		s.cc.start(s.window)
		s.una, s.next, s.conveyed = FirstPSN(h.Epoch), FirstPSN(h.Epoch), FirstPSN(h.Epoch)-1
		s.state, s.helloDue, s.timer, s.workedAt, s.heardAt = Open, false, 0, s.helloAt, now
		s.inquest.life = s.life
		s.measure(now, wire.HeaderLen+s.payload)
		return Event{Kind: Opened}
	case wire.HelloNoEndpoint:
		return s.end(RefusedEndpoint)
	case wire.HelloFull:
		return s.end(RefusedFull)
	case wire.HelloShuttingDown:
		return s.end(RefusedClosing)
	case wire.HelloOutdated:
		return s.end(Outdated)
	case wire.HelloKeyWanted:
		return s.end(RefusedKeyless)
	case wire.HelloKeyUnwanted:
		return s.end(RefusedKey)
	case wire.HelloKeyWrong:
		return s.end(RefusedOtherKey)
	}
	// HelloBadVersion, or a reason of a later version: the target asks for something
	// that this side does not know.
	return s.end(RefusedVersion)
}

// early returns what a frame says of requests that ran ahead of others: nothing, if the
// target keeps the order and so only holds them.
func (s *Initiator) early(h *wire.Header) uint64 {
	if s.shared&wire.FeatureUnordered == 0 {
		return 0
	}
	return h.Sack
}

// onReset ends the session. A target that closes in good order names the first
// psn that it did not execute and never will. One that does not know the
// session may have restarted, or forgotten it, or may not be the target at all:
// the session is suspended until a hello-ack tells.
func (s *Initiator) onReset(h *wire.Header, payload []byte) Event {
	var r wire.ResetMsg
	if r.Parse(payload) != wire.ReasonOK || r.Session != s.remote {
		return Event{Kind: Refused}
	}
	switch r.Reason {
	case wire.ResetClosed, wire.ResetShuttingDown:
		s.final, s.finalSet = Ran{PSN: r.PSN - 1, Early: s.early(h)}, true
		return s.end(PeerClosed)
	case wire.ResetOutOfWindow:
		return s.end(ProtocolError)
	}
	// The session is unknown, or has ended for a reason of a later version.
	if s.state == Settling {
		return s.end(Forgotten)
	}
	return s.suspend(Forgotten)
}

func (s *Initiator) end(why Reason) Event {
	s.Close(why)
	return Event{Kind: Ended}
}

// FirstPSN returns the psn of the first request of an epoch. It is as random as
// the epoch, so that wrap-around is an everyday event and not a rare one.
func FirstPSN(epoch uint32) uint32 { return epoch * 0x9E3779B1 }
