// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
)

const (
	// timerPeriod is the time between two looks at the timers while anything is under
	// way.
	timerPeriod = int64(time.Millisecond)
	// TimerBatch is the most sessions whose timers are looked at in one period: when
	// there are more, the rest wait for the next one. To look at all of them each
	// time would take a tenth of the poller's time at 1000 sessions, most of it for
	// cache misses.
	TimerBatch = 256
	// clockEvery is the number of rounds after which Spin looks at the clock whatever
	// happens. A look takes as long as the rest of an idle round.
	clockEvery = 16
)

// clock is the time as an engine knows it, in nanoseconds of Config.Clock.
type clock struct {
	read    func() int64
	now     int64 // the time of the last look
	lived   int64 // how long the engine has been running: now, less long pauses
	paused  bool  // see Engine.Pause
	fresh   bool  // now is the time of this round
	spins   int   // rounds of Spin since its last regular look
	skips   int   // calls of Poll to come that do not look
	timerAt int64 // the time of the next look at the timers
	turn    int   // of table.all: the session whose timers were looked at last
}

func newClock(read func() int64) clock {
	now := read()
	return clock{read: read, now: now, lived: now}
}

// Lived returns the time that a Served is told, as of the last look at the clock: it does
// not go on while the process is stopped. Engine's thread only.
func (e *Engine) Lived() int64 { return e.lived }

// look sets now to the present, once a round.
func (c *clock) look() {
	if !c.fresh {
		c.fresh = true
		c.tell()
	}
}

// tell sets now to the present. A pause that is longer than any sleep means that the
// process was stopped, or that the caller did not step the engine. Peers could not be
// heard meanwhile, so the pause hardly counts towards their silence. That of Engine.Pause
// does not count at all.
func (c *clock) tell() {
	now := c.read()
	if !c.paused {
		c.lived += min(now-c.now, int64(session.Stalled))
	}
	c.now = now
}

// Now returns the time of the round under way. It looks at the clock if the round has
// not: one that sends requests or takes answers does so once anyway. Engine's thread
// only.
func (e *Engine) Now() int64 {
	e.look()
	return e.now
}

// Step makes one round and returns how much there was to do; 0 means idle.
func (e *Engine) Step() int {
	e.fresh = false
	e.look()
	return e.round()
}

// Spin is Step for a caller that calls it again at once, and came here from Step or Spin.
// It does not look at the clock while there is nothing to do but to answer requests,
// which does not need the time. A round that sends requests, or takes answers, looks.
func (e *Engine) Spin() int {
	e.fresh = false
	if e.spins++; e.spins >= clockEvery {
		e.spins = 0
		e.look()
	}
	return e.round()
}

// timers lets time pass for the next n sessions, publishes the counters and returns the
// earliest deadline seen, 0 for none.
func (e *Engine) timers(n int) (due int64) {
	if e.deferredAck.c != nil { // or time would be found to have passed without it
		e.takeDeferredAck()
	}
	for n = min(n, len(e.table.all)); n > 0 && len(e.table.all) > 0; n-- {
		if e.turn == 0 || e.turn > len(e.table.all) {
			e.turn = len(e.table.all)
		}
		e.turn-- // downwards: a tick may remove its entry
		if d := e.table.all[e.turn].tick(e.now); d != 0 && (due == 0 || d < due) {
			due = d
		}
	}
	e.timerAt = e.now + timerPeriod
	e.Publish()
	return due
}

// allTimers is timers for all sessions, from the last one down, so that none is skipped.
func (e *Engine) allTimers() (due int64) {
	e.turn = 0
	return e.timers(len(e.table.all))
}

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
		return soonest(x.ini.Deadline(), x.nextAsk())
	case *Inquiry:
		return x.asker.Deadline()
	case *target:
		at := min(x.deadline(), x.limit())
		if x.midway && x.stall.since != 0 {
			at = min(at, x.stallsAt())
		}
		return e.now + at - e.lived
	}
	return e.now
}

// soonest returns the earlier of a deadline, 0 for none, and a time, math.MaxInt64 for
// none.
func soonest(deadline, at int64) int64 {
	switch {
	case at == math.MaxInt64:
		return deadline
	case deadline == 0:
		return at
	}
	return min(deadline, at)
}

// nextAsk returns when the target is asked again about an operation that waits there, or
// math.MaxInt64.
func (c *conn) nextAsk() int64 {
	next := int64(math.MaxInt64)
	for _, x := range c.tickets {
		next = min(next, x.at)
	}
	return next
}
