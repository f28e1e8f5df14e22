// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Session is the target half of one session.
type Session struct {
	*session.Target
	x     *Executor
	party session.Party
	over  bool // Release was called
}

// Receive takes a frame of the session, runs it if it is its turn, and then the early ones whose turn has come: they are
// tried with every frame that arrives, for they may have had to wait for a buffer. If there is nothing but the answer
// to this frame to be sent, and out is not nil, that is written there at once.
func (s *Session) Receive(now int64, h *wire.Header, payload, out []byte) session.Outcome {
	o := session.Outcome{Verdict: s.Target.Receive(now, h, payload)}
	if o.Verdict == session.Execute && !s.execute(payload, h.Ops, &o) {
		o.Verdict = session.NoBuffer
	}
	for o.Refused == wire.ReasonOK {
		payload, ops, ok := s.NextHeld()
		if !ok || !s.execute(payload, ops, &o) {
			break
		}
	}
	if out != nil && o.Refused == wire.ReasonOK {
		o.Answer = s.Answer(out)
	}
	return o
}

// execute runs the expected frame. It returns false when there is no buffer for its answer: the frame will come again.
// A malformed one, which its checksum says was sent so, is refused.
func (s *Session) execute(payload []byte, ops uint8, o *session.Outcome) bool {
	b := s.Buffer()
	if b == nil {
		return false
	}
	n, flags, reason := s.x.memory.Execute(payload, int(ops), b)
	if reason != wire.ReasonOK {
		s.Unbuffer(b)
		o.Refused = reason
		return true
	}
	s.Executed(b, n, ops, flags)
	o.Frames++
	o.Ops += int(ops)
	return true
}

// Settle says that the burst is over to which the frames belonged that ran.
func (s *Session) Settle() { s.x.memory.Leave() }

// Release gives everything back that the session has. It is dead afterwards: nothing is due, and only Settle may follow.
func (s *Session) Release() {
	if s.over {
		return
	}
	s.over = true
	s.Target.Release()
	room := s.x.parties[s.party]
	if room.sessions--; room.sessions == 0 {
		delete(s.x.parties, s.party)
	}
}
