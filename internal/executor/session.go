// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Session is the target half of one session.
type Session struct {
	*session.Target
	x     *Executor
	party session.Party
	auth  uint32 // number of the authorization key

	observer Observer // nil if there is none

	features wire.Features  // records of others are refused
	places   session.Places // nil if the session has no notices
	streak   uint32         // records that have succeeded in a row
	notices  []wire.Notice  // of this Receive
	inflow   session.Inflow // nil if the session has no messages
	partial  partial

	waits  *waits // nil before the first operation that waits
	silent atomic.Bool
	soon   func(f func())
	wake   func()
	now    int64 // of the frame at hand

	attendant session.Attendant // nil if there is none
	tickets   *tickets          // of the frames that it has; nil before the first one

	callee  session.Callee // nil if the session has no calls
	replies *replies       // nil before the first one
	request wire.Call      // at hand; a field for the reason of message

	midway bool // a message has begun, and is not whole
	// the record at hand; here, as the inflow may keep what it is given, for all the
	// compiler knows
	message wire.Message
}

// Receive takes a frame of the session, runs it if it is its turn or there is no order,
// and then the early ones whose turn has come: they are tried with every frame that
// arrives, for they may have had to wait for a buffer. If the answer to this frame is all
// that is to be sent, and out is not nil, it is written to out at once.
func (s *Session) Receive(now int64, h *wire.Header, payload, out []byte) (o session.Outcome) {
	s.notices = s.notices[:0]
	s.now = now
	if h.Type == wire.Tickets {
		o.Verdict = s.onTickets(h, payload)
		o.Due, o.Waits, o.Midway = s.Due(), s.Kept(), s.midway
		return o
	}
	if s.attendant != nil && s.attendant.Attends() {
		s.Order()
	}
	o.Verdict = s.Target.Receive(now, h, payload)
	if s.silent.Load() {
		s.heard()
	}
	if o.Verdict == session.Execute {
		o.Verdict, o.Refused = s.execute(payload, h.Ops, h.Flags)
		if o.Verdict == session.Execute && o.Refused == wire.ReasonOK {
			o.Frames, o.Ops = 1, int(h.Ops)
		}
	}
	if s.Holds() && (!s.Kept() || s.Handed() > 0) && o.Refused == wire.ReasonOK {
		s.executeHeld(&o)
	}
	o.Awaited = *s.x.waiting > 0
	if out != nil && o.Refused == wire.ReasonOK && !o.Awaited { // or news leaves first
		o.Answer = s.Answer(out)
	}
	o.Due, o.Waits, o.Midway, o.Notices = s.Due(), s.Kept(), s.midway, s.notices
	o.Failed = s.x.failed()
	o.Delays = o.Frames == 1 && o.Verdict == session.Execute && s.Delays(h)
	return o
}

// executeHeld runs the early frames whose turn has come.
func (s *Session) executeHeld(o *session.Outcome) {
	for o.Refused == wire.ReasonOK && s.MayHand() {
		payload, ops, flags, ok := s.NextHeld()
		if !ok {
			return
		}
		handed := s.Handed()
		v, reason := s.execute(payload, ops, flags)
		if v != session.Execute {
			if s.Handed() > handed || v == session.Drop {
				continue
			}
			return
		}
		if o.Refused = reason; reason == wire.ReasonOK {
			o.Frames++
			o.Ops += int(ops)
		}
	}
}

// execute runs the frame whose turn it is, unless there is no buffer for its answer, or
// no place for its event: then it will come again. A malformed one is refused: its
// checksum is right, so it was sent malformed.
func (s *Session) execute(payload []byte, ops, flags uint8) (session.Verdict, wire.Reason) {
	if flags&wire.FlagMessages != 0 {
		if s.Handed() > 0 {
			return s.await(payload, ops, flags), wire.ReasonOK
		}
		return s.deliver(payload, ops)
	}
	if wire.IsCall(payload) {
		return s.call(payload, ops)
	}
	// the rest of a frame, or of a message, was sent in its place
	if (s.partial.answer != nil || s.midway) && !s.Ahead() {
		return session.Execute, wire.ReasonBadPayload
	}
	b := s.Buffer()
	if b == nil {
		return session.NoBuffer, wire.ReasonOK
	}
	if s.x.auth != s.auth {
		s.x.auth = s.auth
		s.x.memory.Present(s.auth)
	}
	m := s.x.memory
	uses, reason := m.Check(payload, int(ops))
	notice := uses&wire.FeatureNotices != 0
	if reason == wire.ReasonOK && (uses&^s.features != 0 || notice && s.places == nil) {
		reason = wire.ReasonReservedVerb
	}
	if reason != wire.ReasonOK {
		s.Unbuffer(b)
		return session.Execute, reason
	}
	if uses&wire.FeatureWaits != 0 {
		s.serves()
	}
	if s.attendant != nil {
		if v := s.attend(payload, b, ops, flags, notice); v != session.Execute {
			return v, wire.ReasonOK
		}
	}
	if notice && !s.places.Take() {
		m.Leave() // attend may have looked for regions
		s.Unbuffer(b)
		s.Wait(s.features&wire.FeatureEchoes != 0)
		return session.NoPlace, wire.ReasonOK
	}
	n, said := m.Execute(b, s.streak)
	s.streak = m.Streak()
	if said&wire.FlagStatus != 0 {
		s.x.refused.Note(b[:n], m.Refused())
	}
	s.Executed(b, n, ops, said)
	if notice {
		s.noted()
	}
	if s.observer != nil { // the answer leaves later
		s.observer.Touched(s.x.memory.Touched())
	}
	return session.Execute, wire.ReasonOK
}

// noted hands out the event of the frame that has run, whose place was taken.
func (s *Session) noted() {
	if n, ok := s.x.memory.Notice(); ok {
		s.notices = append(s.notices, n)
	} else {
		s.places.Return()
	}
}

// Settle is called when the burst to which the executed frames belonged is over.
func (s *Session) Settle() { s.x.memory.Leave() }

// Release gives back everything that the session has. Afterwards nothing is due, and
// only Settle may be called.
func (s *Session) Release() {
	if _, lives := s.x.sessions[s]; !lives {
		return
	}
	delete(s.x.sessions, s)
	s.endInflow()
	s.endTickets()
	s.dropWaits()
	s.endCalls()
	s.Target.Release()
	room := s.x.parties[s.party]
	if room.sessions--; room.sessions == 0 {
		delete(s.x.parties, s.party)
	}
}
