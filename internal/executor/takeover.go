// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// sessionState is everything that a session knows, for the executor of another process.
type sessionState struct {
	session.TargetState
	Streak  uint32
	Partial *partialState        `json:",omitempty"`
	Inflow  *session.InflowState `json:",omitempty"`
	// Attendant names the session to the program that executes for it.
	Attendant uint64 `json:",omitempty"`
	// Callee names the session to the program whose function answers its calls.
	Callee uint64 `json:",omitempty"`
	// Ends are what is known of operations that waited.
	Ends []wire.Ticket `json:",omitempty"`
}

// partialState is a frame of messages that ran in part.
type partialState struct {
	Ran    int
	Ops    uint8
	Said   uint8
	Answer []byte
}

// State implements engine.Mobile. What waits in the session ends here, and never ran; the
// next process says so.
func (s *Session) State(now int64) ([]byte, error) {
	if s.callee != nil {
		s.takeReplies(new(session.Outcome)) // so that those that are away are with the program
	}
	x := sessionState{TargetState: s.Target.State(now), Streak: s.streak, Ends: s.exportWaits()}
	if p := &s.partial; p.answer != nil {
		x.Partial = &partialState{p.ran, p.ops, p.said, p.answer[:p.n]}
	}
	if s.callee != nil {
		c, can := s.callee.(session.MobileCallee)
		if !can {
			return nil, errors.New("a session with a function of this process: want endpoints without one")
		}
		x.Callee = c.State()
	}
	if s.inflow != nil {
		in, can := s.inflow.(session.MobileInflow)
		if !can {
			return nil,
				errors.New(
					"a session with messages for an endpoint of this process: want endpoints of other programs alone")
		}
		state := in.State()
		x.Inflow = &state
	}
	if s.ticketed() > 0 {
		a, can := s.attendant.(session.MobileAttendant)
		if !can {
			return nil, errImmovable
		}
		x.Attendant = a.State()
	}
	return json.Marshal(&x)
}

// Restore implements engine.Mobile.
func (s *Session) Restore(state []byte, now int64) error {
	var x sessionState
	if err := json.Unmarshal(state, &x); err != nil {
		return err
	}
	asked, err := s.restoreCallee(&x) // first, so that its owner learns of the end in any case
	if err != nil {
		return err
	}
	if err := s.restoreInflow(&x); err != nil { // likewise
		return err
	}
	if err := s.Target.Restore(&x.TargetState, now); err != nil {
		return err
	}
	s.streak = x.Streak
	s.importWaits(x.Ends)
	if p := x.Partial; p != nil {
		b := s.Reclaim(x.Spared, p.Answer)
		if b == nil {
			return errors.New("no buffer for the answer to a frame of messages: want as many buffers as there were")
		}
		s.partial = partial{ran: p.Ran, ops: p.Ops, said: p.Said, answer: b, n: len(p.Answer)}
	}
	if s.Handed() > 0 {
		if err := s.restoreTickets(&x); err != nil {
			return err
		}
	}
	return s.restoreCalls(&x, asked)
}

var errImmovable = errors.New("frames are with a program that executes them here, and not there: want it in both")

// restoreTickets goes on waiting for the answers to the frames that are handed over.
func (s *Session) restoreTickets(x *sessionState) error {
	a, can := s.attendant.(session.MobileAttendant)
	if !can && x.Ended != 0 {
		return nil // nobody waits for the answers
	}
	if !can {
		return errImmovable
	}
	if n := a.Restore(x.Attendant); n != s.Handed() {
		return fmt.Errorf("%d frames are with a program that executes them, which knows of %d", s.Handed(), n)
	}
	s.tickets = new(tickets)
	for i := range s.Handed() {
		psn, payload, ops := s.Frame(i)
		b := s.Reclaim(x.Spared, nil)
		if b == nil {
			return errors.New("no buffer for the answer to a frame that is handed over: want as many as there were")
		}
		*s.tickets.of(psn) = b[:x.Payload]
		if s.recheck(payload, ops) && !s.places.Take() {
			return errors.New("no place for the event of a frame that is handed over: want as many as there were")
		}
	}
	return nil
}

func (s *Session) restoreInflow(x *sessionState) error {
	switch in, can := s.inflow.(session.MobileInflow); {
	case x.Inflow == nil && s.inflow == nil, x.Ended != 0:
	case x.Inflow != nil && can:
		in.Restore(*x.Inflow)
		_, lacks := in.InProgress()
		s.midway = lacks > 0
	default:
		return errors.New(
			"a session has messages in one process and none in the other: want endpoints that take the same")
	}
	return nil
}

// Detach gives back what the session holds, as Release does, but its messages do not end:
// another process continues the session.
func (s *Session) Detach() {
	s.inflow = nil
	s.detachTickets()
	s.detachCalls()
	if b := s.partial.answer; b != nil {
		s.partial.answer = nil
		s.Unbuffer(b)
	}
	s.Release()
}
