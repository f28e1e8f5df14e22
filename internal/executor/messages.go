// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A frame of messages runs record by record: one that begins a message waits until there
// is room for it. Then the frame is kept, and what has run of it does not run again.

// partial is a frame of messages that ran in part.
type partial struct {
	ran    int    // records
	ops    uint8  // records in all
	answer []byte // for the answer, as there may have to be one at any time; nil: there is no such frame
	n      int    // bytes of the answer
	said   uint8  // flags of the answer
}

// deliver runs the frame of messages whose turn it is, or what is left of it, until a
// message has to wait.
func (s *Session) deliver(payload []byte, ops uint8) (session.Verdict, wire.Reason) {
	if reason := s.follows(payload, ops); reason != wire.ReasonOK {
		return session.Execute, reason
	}
	p := &s.partial
	if p.answer == nil {
		*p = partial{ops: ops, answer: s.Buffer()}
		if p.answer == nil {
			return session.NoBuffer, wire.ReasonOK
		}
	}
	all := s.put(payload)
	_, lacks := s.inflow.InProgress()
	s.midway = lacks > 0
	if !all {
		if p.ran == 0 {
			s.Unbuffer(p.answer)
			p.answer = nil
		}
		s.Keep(payload, ops, uint8(p.ran))
		return session.NoPlace, wire.ReasonOK
	}
	b := p.answer
	p.answer = nil
	if p.said&wire.FlagStatus != 0 {
		s.x.refused.Note(b[:p.n], nil)
	}
	s.Executed(b, p.n, ops, p.said)
	return session.Execute, wire.ReasonOK
}

// follows checks that the records which have not run are well-formed and go on where the
// session stands. It says nothing of those that have run. The last record is left in
// s.message.
func (s *Session) follows(payload []byte, ops uint8) wire.Reason {
	var r wire.MessageReader
	m := &s.message
	r.Reset(payload, int(ops))
	if s.partial.answer != nil {
		if ops != s.partial.ops {
			return wire.ReasonBadPayload
		}
		r.Skip(s.partial.ran)
	}
	has, lacks := s.inflow.InProgress()
	for r.Next(m) {
		n := uint64(len(m.Part))
		switch {
		case m.Atomic.Form != 0 && !s.features.Allow(m.Atomic.Form.Tagged()):
			return wire.ReasonReservedVerb
		case m.Begins && lacks == 0:
			if m.Atomic.Form != 0 {
				n = m.Length // it is whole
			}
			has, lacks = n, m.Length-n
		case m.Begins || lacks == 0 || m.Offset != has || n > lacks:
			return wire.ReasonBadPayload
		case m.Drop:
			lacks = 0
		default:
			has, lacks = has+n, lacks-n
		}
	}
	return r.Reason()
}

// put runs the records that have not run, and returns false if there is no room for the
// next one.
func (s *Session) put(payload []byte) bool {
	var r wire.MessageReader
	r.Reset(payload, int(s.partial.ops))
	r.Skip(s.partial.ran)
	in, m := s.inflow, &s.message
	in.Begin()
	defer in.End()
	if int(s.partial.ops)-s.partial.ran == 1 { // the ordinary case: follows has just decoded it
		return s.run(m)
	}
	for r.Next(m) {
		if !s.run(m) {
			return false
		}
	}
	return true
}

// run runs one record, and returns false if there is no room for it.
func (s *Session) run(m *wire.Message) bool {
	in := s.inflow
	switch {
	case m.Atomic.Form != 0:
		if !s.combine(m) {
			return false
		}
	case m.Begins && !in.Admit(m):
		return false
	case !m.Begins && !m.Drop && !in.Fits(len(m.Part)):
		return false
	case m.Drop:
		in.Drop()
	default:
		in.Put(m.Part)
	}
	s.partial.ran++
	return true
}

// Retry runs the frames that were kept for want of room, until the room is used up again.
func (s *Session) Retry() (o session.Outcome) {
	s.notices = s.notices[:0]
	if s.Handed() > 0 {
		s.takeAnswers(&o)
	}
	if s.callee != nil {
		s.takeReplies(&o)
	}
	s.executeHeld(&o)
	o.Due, o.Waits, o.Midway, o.Notices = s.Due(), s.Kept(), s.midway, s.notices
	o.Awaited = *s.x.waiting > 0
	o.Failed = s.x.failed()
	return o
}

// Freeze is that of session.Target. What has come of a message that is not whole is
// dropped, since its initiator will not go on, and calls that wait for the function end.
func (s *Session) Freeze(now int64, ack uint32) session.Ran {
	s.endInflow()
	s.endWaits()
	s.recall()
	return s.Target.Freeze(now, ack)
}

// Shutdown is that of session.Target, and drops likewise. Frames that an attendant has
// whose owner has ended are given up.
func (s *Session) Shutdown(why wire.ResetReason) {
	s.endInflow()
	s.endWaits()
	s.recall()
	s.Target.Shutdown(why)
	if s.ticketed() > 0 && s.attendant.Gone() {
		s.dropTickets()
		s.DropHanded()
	}
}

// endInflow ends the inflow. The records of a frame that have not run will not run, and
// its answer says so.
func (s *Session) endInflow() {
	if s.inflow == nil {
		return
	}
	s.midway = false
	s.inflow.Close()
	p := &s.partial
	if p.answer == nil {
		return
	}
	var w wire.ResponseWriter
	w.Reset(p.answer, int(p.ops))
	for i := p.ran; i < int(p.ops); i++ {
		w.AppendStatus(i, wire.StatusNotExecuted)
	}
	n, flags := w.Finish()
	b := p.answer
	p.answer = nil
	s.Turn()
	s.Executed(b, n, p.ops, flags)
}
