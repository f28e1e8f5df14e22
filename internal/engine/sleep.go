// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"sync/atomic"
	"time"
)

// sleeper tells posters whether the engine needs to be woken.
type sleeper struct {
	asleep atomic.Bool // written by the engine
}

// mayRest returns how long the engine may sleep, which is at most limit, and not later
// than the next timer.
func (e *Engine) mayRest(limit time.Duration) time.Duration {
	e.tell()
	d := limit
	if due := e.allTimers(); due != 0 {
		d = min(d, time.Duration(due-e.now))
	}
	e.say()
	if due := e.retryDue(); due != 0 {
		d = min(d, time.Duration(due-e.now))
	}
	if len(e.dirty) > 0 { // transmit buffers were short, or a timer has made a frame due
		d = min(d, time.Duration(timerPeriod))
	}
	return d
}

// retryDue returns the earliest time at which a target that had no room is asked again,
// or 0. Its sessions have ended, so that no timer of theirs tells.
func (e *Engine) retryDue() (due int64) {
	for _, r := range e.ready {
		if r.fullSince != 0 && r.refused() && (due == 0 || r.retryAt < due) {
			due = max(r.retryAt, e.now+1)
		}
	}
	return due
}

// Sleep waits for work for at most limit, or until the next timer is due.
// Engine's thread only.
func (e *Engine) Sleep(limit time.Duration) {
	d := e.mayRest(limit)
	if d <= 0 {
		return
	}
	// A poster publishes first and looks at asleep afterwards; the engine sets asleep
	// first and looks for work afterwards, so one of the two sees the other.
	e.sleeper.asleep.Store(true)
	if !e.guests.rest() && !e.waiting() {
		e.port.Wait(d)
	}
	e.rise()
}

// rise records that the engine is awake.
func (e *Engine) rise() {
	e.sleeper.asleep.Store(false)
	e.guests.rise()
	e.tell()
}

// waiting reports whether other goroutines have left work.
func (e *Engine) waiting() bool {
	if len(e.inbox) > 0 || len(e.calls) > 0 || e.mail.Load() {
		return true
	}
	for _, r := range e.rings {
		if r.collectable() {
			return true
		}
	}
	return false
}

// Idle reports whether nothing waits to be sent. Engine's thread only.
func (e *Engine) Idle() bool { return len(e.dirty)+len(e.ready)+len(e.starved) == 0 }

// Notify makes the engine look at its rings soon: call it after Publish.
func (e *Engine) Notify() { e.wakeIfAsleep() }

func (e *Engine) wakeIfAsleep() {
	if e.sleeper.asleep.Load() {
		e.Wake()
	}
}

// Alert is Wake without a system call unless the engine sleeps: the engine looks once
// more before it goes to sleep.
func (e *Engine) Alert() {
	e.mail.Store(true)
	e.wakeIfAsleep()
}

// Wake ends the engine's sleep, or prevents the next one.
func (e *Engine) Wake() { e.cfg.Port.Wake() }
