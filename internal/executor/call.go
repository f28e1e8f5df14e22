// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A call goes to the function of the target's owner: see session.Callee. The buffer for
// the answer is taken before, so that what has been executed can always be answered. The
// reply goes into the cache of answers like any result, and so a copy of the request is
// answered with it: the function has each request once.

// replies are the answer buffers of the frames that are away, by psn.
type replies [session.MaxWindow][]byte

func (r *replies) of(psn uint32) *[]byte { return &r[psn%session.MaxWindow] }

// call hands the call at hand to the function.
func (s *Session) call(payload []byte, ops uint8) (session.Verdict, wire.Reason) {
	c := &s.request
	reason := c.ParseCall(payload, int(ops))
	if reason == wire.ReasonOK && s.callee == nil {
		reason = wire.ReasonReservedVerb
	}
	if reason == wire.ReasonOK && s.midway && !s.Ahead() {
		reason = wire.ReasonBadPayload // the rest of a message was sent in its place
	}
	if reason != wire.ReasonOK {
		return session.Execute, reason
	}
	b := s.Buffer()
	if b == nil {
		return session.NoBuffer, wire.ReasonOK
	}
	status := s.callee.Ask(s.PSN(), c)
	c.Request = nil
	if status != wire.StatusOK {
		s.reply(b, nil, status)
		return session.Execute, wire.ReasonOK
	}
	if s.replies == nil {
		s.replies = new(replies)
	}
	*s.replies.of(s.PSN()) = b
	s.Send()
	return session.Drop, wire.ReasonOK
}

// reply answers the call at hand in b: with the reply of the function, or with why it
// never had the request.
func (s *Session) reply(b []byte, r *wire.Reply, status wire.Status) {
	if status == wire.StatusOK {
		s.Executed(b, r.Put(b), 1, 0)
		s.streak++
		return
	}
	w := &s.x.response
	w.Reset(b, 1)
	w.AppendStatus(0, status)
	n, flags := w.Finish()
	s.streak = 0
	s.Executed(b, n, 1, flags)
}

// takeReplies answers the calls that have ended.
func (s *Session) takeReplies(o *session.Outcome) {
	for {
		psn, r, status, ok := s.callee.Answered()
		if !ok {
			return
		}
		b := s.replies.of(psn)
		s.Return(psn)
		s.reply(*b, r, status)
		*b = nil
		s.callee.Drop()
		o.Frames++
		o.Ops++
	}
}

// recall ends the requests that the function does not have yet, since the session ends.
func (s *Session) recall() {
	if s.callee != nil {
		s.callee.Recall()
		s.takeReplies(new(session.Outcome))
	}
}

// endCalls gives up the calls that are away: nobody wants their replies now.
func (s *Session) endCalls() {
	if s.callee != nil {
		s.dropReplies()
		s.callee.Close()
	}
}

// dropReplies gives back the answer buffers of the calls that are away.
func (s *Session) dropReplies() {
	if s.replies == nil {
		return
	}
	for i, b := range s.replies {
		if b != nil {
			s.Unbuffer(b)
			s.replies[i] = nil
		}
	}
}

// detachCalls gives back what the calls hold here: another process has their replies.
func (s *Session) detachCalls() {
	if s.callee == nil {
		return
	}
	s.dropReplies()
	if c, can := s.callee.(session.MobileCallee); can {
		c.Detach()
	} else {
		s.callee.Close()
	}
	s.callee = nil
}

// restoreCallee makes the callee that of a session of another process, and returns which
// requests the function has.
func (s *Session) restoreCallee(x *sessionState) (asked uint64, err error) {
	c, can := s.callee.(session.MobileCallee)
	switch {
	case x.Callee == 0 && s.callee == nil, x.Ended != 0 && !can:
		return 0, nil
	case x.Callee == 0 || !can:
		return 0, errors.New("a session has its calls answered in one process and not in the other: want endpoints " +
			"with a function in both")
	}
	return c.Restore(x.Callee), nil
}

// restoreCalls goes on waiting for the replies to the calls that are away.
func (s *Session) restoreCalls(x *sessionState, asked uint64) error {
	if s.callee == nil {
		return nil
	}
	if asked != s.Away() {
		return fmt.Errorf("the calls %#x are away, and the program with the function has %#x", s.Away(), asked)
	}
	s.replies = new(replies)
	for away := asked; away != 0; away &= away - 1 {
		b := s.Reclaim(x.Spared, nil)
		if b == nil {
			return errors.New("no buffer for the answer to a call that is away: want as many as there were")
		}
		s.replies[bits.TrailingZeros64(away)] = b[:x.Payload]
	}
	return nil
}
