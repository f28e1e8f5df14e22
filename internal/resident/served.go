// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"encoding/binary"
	"math/bits"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Session is the engine's handle on a resident session (engine.Served). It decides
// nothing of what runs: it hands frames that the program has left to user space to the
// program again, by a call, executes those that the program cannot, and has early frames
// wait.
type Session struct {
	v     *Server
	p     session.TargetParams
	place uint32
	state view

	held     [window]early // by psn modulo 64
	holds    *session.Share
	heldMask uint64

	toSend   uint64 // bit psn%64: its answer is due
	infoDue  bool   // an ack is due
	nakDue   bool   // likewise, as a frame is missing
	echo     uint32 // number of a probe that wants it back, if echoDue
	echoDue  bool
	echoPad  int // zeros in the answer, bytes: those of the longest probe that it answers
	resetDue wire.ResetReason
	ended    wire.ResetReason
	frozen   bool
	released bool
	torn     bool // a frame has run, at least in part, that the program does not know of
	barred   bool // the program did not obey: no frame runs

	losses losses // of answers that the program sends

	toldFrames, toldOps uint64 // that ran, and which the engine was told of

	// Of the place: see seats.go.
	wanted atomic.Bool // the session is asked to give it back
	idle   atomic.Bool // it has long been silent
	firm   atomic.Bool // it could not go when it was asked
	yields bool        // it goes

	heard, heardAt int64 // the latest news: how many there had been, and when in the engine's time
}

func bit(psn uint32) uint64 { return 1 << (psn % window) }

// Receive takes a frame of the session: see engine.Served.
func (s *Session) Receive(_ int64, h *wire.Header, payload, out []byte) (o session.Outcome) {
	switch {
	case h.Type == wire.Reset:
		o.Verdict = s.onReset(payload)
		return o
	case s.torn: // forgotten, so that the initiator learns that its outcome is unknown
		o.Verdict = session.Gone
		return o
	case s.barred:
		o.Verdict = session.NoBuffer
		return o
	}
	if s.ended != 0 && (h.Type == wire.Request || h.Type == wire.Probe) {
		s.resetDue = s.ended // the initiator has not heard of it
	}
	answer := s.take(h, payload, &o)
	s.losses.arrived(s.Acked()) // not the frame's ack, which the program may refuse
	if h.Type == wire.Request && h.Flags&wire.FlagRetx != 0 && o.Verdict == session.Duplicate {
		s.again(h.PSN)
	}
	if s.heldMask != 0 && o.Refused == wire.ReasonOK {
		s.takeHeld(&o)
	}
	if out != nil && len(answer) > 0 && o.Refused == wire.ReasonOK && s.only(h) {
		o.Answer = copy(out, answer)
		s.losses.answered(answer)
		s.toSend, s.infoDue, s.echoDue = 0, false, false
	}
	if s.losses.inRow > 0 || s.losses.relays {
		s.judge()
	}
	o.Due = s.Due()
	return o
}

// only reports whether the answer to a frame is all that is due.
func (s *Session) only(h *wire.Header) bool {
	if s.nakDue || s.resetDue != 0 {
		return false
	}
	if h.Type == wire.Probe {
		return s.toSend == 0
	}
	return s.toSend == bit(h.PSN) && !s.infoDue && !s.echoDue
}

func (s *Session) onReset(payload []byte) session.Verdict {
	var r wire.ResetMsg
	if r.Parse(payload) == wire.ReasonOK && r.Session == uint32(s.p.Local) {
		return session.Gone
	}
	return session.Invalid
}

// take hands a frame to the program. It returns the frame that answers it, if there is
// one, which is valid until the next call.
func (s *Session) take(h *wire.Header, payload []byte, o *session.Outcome) (answer []byte) {
	if h.Flags&wire.FlagMessages != 0 || wire.HeaderLen+len(payload) > MaxFrame {
		o.Verdict = session.Invalid
		return nil
	}
	clean := *h
	clean.Flags &= wire.FlagRetx
	clean.Ops = h.Ops
	if h.Type != wire.Request {
		clean.Ops = 0
	}
	b, body := s.v.frame, payload
	if h.Type == wire.Probe {
		clean.Flags |= h.Flags & wire.FlagEcho
		body = nil // the program knows short probes alone
	}
	clean.Put(b)
	n := wire.HeaderLen + copy(b[wire.HeaderLen:], body)
	if n < wire.MinFrame {
		clear(b[n:wire.MinFrame])
		n = wire.MinFrame
	}
	verdict, answer, err := s.v.c.call(callReceive, uint32(s.p.Local), 0, b[:n])
	if err != nil {
		verdict = Busy
	}
	switch verdict {
	case Execute:
		s.ran(h.PSN, h.Ops, o)
	case Duplicate:
		s.toSend |= bit(h.PSN)
		o.Verdict = session.Duplicate
	case Drop:
		s.infoDue = s.infoDue || h.Type == wire.Probe
		if clean.Flags&wire.FlagEcho != 0 && (!s.echoDue || wire.Diff(h.PSN, s.echo) > 0) {
			s.echo, s.echoDue, s.echoPad = h.PSN, true, max(s.echoPad, min(len(payload), s.p.MaxFrame-wire.HeaderLen))
		}
		o.Verdict = session.Drop
		if s.echoPad > 0 {
			return nil // the program's answer is too short
		}
	case Early:
		o.Verdict = s.hold(h.PSN, payload, h.Ops)
		return nil
	case Foreign:
		s.execute(h, b[wire.HeaderLen:wire.HeaderLen+len(payload)], o)
		return nil
	case Torn:
		s.torn = true
		o.Verdict = session.Gone
	case Stale, OutOfWindow:
		o.Verdict = session.Verdict(verdict)
	case Busy:
		o.Verdict = session.NoBuffer // it comes again
	default:
		o.Verdict = session.Invalid
	}
	return answer
}

// ran records that a frame of so many operations has run.
func (s *Session) ran(psn uint32, ops uint8, o *session.Outcome) {
	s.toSend |= bit(psn)
	o.Verdict = session.Execute
	o.Frames++
	o.Ops += int(ops)
	s.toldFrames++
	s.toldOps += uint64(ops)
}

// Unseen returns how many frames and operations the program has executed of packets that
// the engine has not seen. The program runs meanwhile, so the two numbers may be of
// different moments.
func (s *Session) Unseen() (frames, ops uint64) {
	frames, ops = s.state.frames(), s.state.ops()
	return frames - min(s.toldFrames, frames), ops - min(s.toldOps, ops)
}

// answerHead is the length of struct answer before the data: n u16, ops, flags, psn u32.
const answerHead = 8

// execute runs a frame that the program cannot run, and which it has claimed for user
// space: until the program is told the outcome, nothing else of the session runs. If this
// process dies before that, the frame stays claimed, and it is unknown whether it ran.
func (s *Session) execute(h *wire.Header, payload []byte, o *session.Outcome) {
	o.Verdict = session.Execute
	uses, reason := s.v.local.Check(payload, int(h.Ops))
	if reason == wire.ReasonOK && uses&^s.p.Features != 0 {
		reason = wire.ReasonReservedVerb
	}
	if reason != wire.ReasonOK {
		o.Refused = reason
		s.v.c.call(callUnclaim, uint32(s.p.Local), 0, nil)
		return
	}
	s.v.local.Present(s.p.Key.ID())
	b := s.v.resp
	n, flags := s.v.local.Execute(b[answerHead:answerHead+s.p.MaxFrame-wire.HeaderLen], 0)
	binary.LittleEndian.PutUint16(b, uint16(n))
	b[2], b[3] = h.Ops, flags
	binary.LittleEndian.PutUint32(b[4:], h.PSN)
	v, _, err := s.v.c.call(callCommit, uint32(s.p.Local), 0, b[:answerHead+n])
	if err != nil || v != Execute {
		s.torn = true // it stays claimed
		o.Verdict = session.Gone
		return
	}
	s.v.x.committed.Add(uint64(h.Ops))
	s.ran(h.PSN, h.Ops, o)
}

// Retry has nothing to do: there are no messages.
func (s *Session) Retry() (o session.Outcome) { return o }

// Settle is called when the burst to which the executed frames belonged is over.
func (s *Session) Settle() { s.v.local.Leave() }

// Ran returns which frames have run.
func (s *Session) Ran() session.Ran {
	expected := s.state.expected()
	return session.Ran{Torn: s.torn || s.state.claimed() == claimInPart, PSN: expected - 1,
		Early: bits.RotateLeft64(s.state.ahead(), -int((expected+1)%window))}
}

// Acked returns the psn up to which all answers have arrived.
func (s *Session) Acked() uint32 { return s.state.freed() }

// HeardAt returns when the initiator last sent something new. The program counts such
// frames; in the engine's time, one came when the engine first asks after it.
func (s *Session) HeardAt() int64 {
	if heard := s.state.heard(); heard != s.heard {
		s.heard, s.heardAt = heard, s.v.now()
	}
	return s.heardAt
}

// Freeze ends execution for good and returns what ran; the answers behind ack are due.
func (s *Session) Freeze(now int64, ack uint32) session.Ran {
	s.oblige(callFreeze, ack)
	if !s.frozen {
		s.frozen = true
		s.heard, s.heardAt = s.state.heard(), now
	}
	s.dropHeld()
	for psn := s.Acked() + 1; psn != s.state.expected(); psn++ {
		s.toSend |= bit(psn)
	}
	s.toSend |= s.state.ahead()
	return s.Ran()
}

// Shutdown makes a reset due that says which frames never ran.
func (s *Session) Shutdown(why wire.ResetReason) {
	s.oblige(callEnd, 0)
	s.resetDue, s.ended = why, why
}

// Release gives back everything that the session has. Only Settle may be called
// afterwards.
func (s *Session) Release() {
	if s.released {
		return
	}
	s.released = true
	s.dropHeld()
	s.toSend, s.infoDue, s.nakDue, s.echoDue, s.resetDue = 0, false, false, false, 0
	if s.oblige(callRelease, 0) {
		if s.yields {
			s.v.x.returned.Add(1)
		}
		s.v.x.book.erase(recordsMap, uint32(s.p.Local))
		s.v.x.giveBack(s.place)
	} else {
		s.v.x.leave(s) // the program has it
	}
}

// Detach is Release for a session that the program and another process continue. Early
// frames will be sent again, and then the program need not ask user space.
func (s *Session) Detach() {
	if s.released {
		return
	}
	s.released = true
	s.v.x.leave(s)
	if s.attended() != 0 {
		s.v.c.call(callAttend, uint32(s.p.Local), 0, nil)
	}
	s.dropHeld()
	s.toSend, s.infoDue, s.nakDue, s.echoDue, s.resetDue = 0, false, false, false, 0
}
