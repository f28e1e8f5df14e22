// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

const (
	// pollSkips is how many calls of Poll in a row may do without the clock. It costs
	// about as much as the rest of an idle round, so the first few calls gain the most.
	pollSkips = 3
	// quickly is the most time, in ns, between two looks at the clock, with as many calls
	// in between, of a caller that calls again at once.
	quickly = int64(20 * time.Microsecond)
)

// Poll is Step for a caller that may call again at once, or much later: nobody can tell
// without a clock. It does without it for at most pollSkips calls, and only if the calls
// since the look before the latest one came quickly and the latest call had nothing to do.
//
// That is right because an old now does harm to timers alone: what is sent or taken
// as an answer is dated by a look of its own, and answering requests has no need of the time. A
// caller that calls rarely has its timers looked at in each call. One that slows down, or
// leaves and comes back, has them looked at in the fourth call at the latest, which sees
// that time has passed; and in the first, if it left when it had got something. That is late
// once, and not again and again; if the four took longer than [session.Stalled], it is as if
// the process had been stopped. Spin would not do: it looks in one call of clockEvery for
// ever, so with calls a second apart it would send again a quarter of a minute late.
func (e *Engine) Poll() int {
	e.fresh = false
	if e.skips > 0 {
		e.skips--
	} else {
		before := e.now
		e.look()
		if e.now-before < quickly {
			e.skips = pollSkips
		}
	}
	n := e.round()
	if n > 0 { // the caller may have something else to do now
		e.skips = 0
	}
	return n
}
