// SPDX-License-Identifier: Apache-2.0

package engine

import "time"

const (
	// pollSkips is the most calls of Poll in a row that do not look at the clock. A look
	// costs about as much as the rest of an idle round, so the first few skips gain the
	// most.
	pollSkips = 3
	// quickly is the most time, in ns, between two looks at the clock with that many
	// calls in between, if the caller calls again at once.
	quickly = int64(20 * time.Microsecond)
)

// Poll is Step for a caller that may call again at once, or much later, which only the
// clock can tell. Poll skips the clock for at most pollSkips calls, and only if the calls
// between the last two looks came quickly and the latest call had nothing to do.
//
// That is right because an old time harms the timers alone: a round that sends requests
// or takes answers looks at the clock by itself, and answering requests does not need the
// time. For a caller that calls rarely, each call looks at the timers. For a caller that
// slows down, or leaves and comes back, the fourth call does so at the latest, and the
// first does if the call before the pause had something to do. So timers are late once,
// and not again and again; if the four calls took longer than [session.Stalled], it is as
// if the process had been stopped. Spin would not do: it looks only in one call out of
// clockEvery, so with calls a second apart it would send again a quarter of a minute
// late.
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
	e.prompt.begin(len(e.ready) > 0)
	n := e.round()
	e.prompt.mayWait = false
	if n > 0 { // the caller may have something else to do now
		e.skips = 0
	}
	return n
}
