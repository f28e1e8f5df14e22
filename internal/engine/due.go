// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
)

// NextDue returns the earliest time, of the engine's clock, at which a step has something
// to do although nothing is received or posted, or 0 when there is none. A time that has
// passed means the next step. As long as there are sessions, the time is at most a second
// away: a longer pause would look as if the engine had been stopped. NextDue looks at
// every session, so it is for callers that skip idle time as a whole: simulators and
// tests. Its answer is valid after a step that had nothing to do. Engine's thread only.
func (e *Engine) NextDue() int64 {
	if len(e.dirty) > 0 || e.deferredAck.c != nil || e.waiting() {
		return e.now
	}
	retry := e.retryDue()
	if len(e.table.all) == 0 {
		return retry
	}
	due := e.now + int64(time.Second)
	if retry != 0 {
		due = min(due, retry)
	}
	for _, x := range e.table.all {
		due = min(due, e.deadline(x))
	}
	return max(due, e.timerAt) // with more than TimerBatch sessions, each batch has its own period
}

// deadline returns the time at which a session's tick has something to do.
func (e *Engine) deadline(x entry) int64 {
	switch x := x.(type) {
	case *conn:
		if state, _ := x.ini.State(); state == session.Suspended {
			if x.r.conn == nil || x.r.conn.spent() {
				return min(x.until, x.r.retryAt)
			}
			return x.until
		}
		return x.ini.Deadline()
	case *Inquiry:
		return x.asker.Deadline()
	case *target:
		at := x.deadline()
		if x.midway && x.stall.since != 0 {
			at = min(at, x.stallsAt())
		}
		return e.now + at - e.lived
	}
	return e.now
}
