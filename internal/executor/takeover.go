// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"encoding/json"
	"errors"

	"github.com/xdpfab/xdpfab/internal/session"
)

// sessionState is everything that a session knows, for the executor of another process.
type sessionState struct {
	session.TargetState
	Streak  uint32
	Partial *partialState        `json:",omitempty"`
	Inflow  *session.InflowState `json:",omitempty"`
}

// partialState is a frame of messages that ran in part.
type partialState struct {
	Ran    int
	Ops    uint8
	Said   uint8
	Answer []byte
}

// State implements engine.Mobile.
func (s *Session) State(now int64) ([]byte, error) {
	x := sessionState{TargetState: s.Target.State(now), Streak: s.streak}
	if p := &s.partial; p.answer != nil {
		x.Partial = &partialState{p.ran, p.ops, p.said, p.answer[:p.n]}
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
	return json.Marshal(&x)
}

// Restore implements engine.Mobile.
func (s *Session) Restore(state []byte, now int64) error {
	var x sessionState
	if err := json.Unmarshal(state, &x); err != nil {
		return err
	}
	if err := s.restoreInflow(&x); err != nil { // first, so that its owner learns of the end in any case
		return err
	}
	if err := s.Target.Restore(&x.TargetState, now); err != nil {
		return err
	}
	s.streak = x.Streak
	if p := x.Partial; p != nil {
		b := s.Reclaim(x.Spared, p.Answer)
		if b == nil {
			return errors.New("no buffer for the answer to a frame of messages: want as many buffers as there were")
		}
		s.partial = partial{ran: p.Ran, ops: p.Ops, said: p.Said, answer: b, n: len(p.Answer)}
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
	if b := s.partial.answer; b != nil {
		s.partial.answer = nil
		s.Unbuffer(b)
	}
	s.Release()
}
