// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/wire"

// A message that has begun and is not whole holds a receive, or memory, which others may
// wait for. If nothing more of it comes for the give-up time of this side, its session
// ends: what has come is dropped, and the initiator, should it live, learns from its next
// session that the message was not executed. The session alone can tell that, since the
// frames that have run are acknowledged.

// stall is what a session in the middle of a message showed last.
type stall struct {
	ran   uint32 // psn of the last frame that has run
	since int64  // in lived; 0: it was not in the middle of one yet
}

// stalled ends a session in the middle of a message of which nothing more comes, and
// returns when it is to be called again.
func (t *target) stalled() int64 {
	e := t.e
	if ran := t.s.Ran().PSN; t.stall.since == 0 || ran != t.stall.ran {
		t.stall = stall{ran, e.lived}
	}
	if left := t.stallsAt() - e.lived; left > 0 {
		return e.now + left
	}
	e.count[MessagesStalled]++
	t.note(SessionStalled, "", nil)
	t.finish(wire.ResetUnknownSession)
	return 0
}

// stallsAt returns when, in lived, a session in the middle of a message is ended if
// nothing more comes until then.
func (t *target) stallsAt() int64 { return t.stall.since + int64(t.e.cfg.Session.GiveUp) }
