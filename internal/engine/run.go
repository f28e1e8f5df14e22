// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"runtime"
	"sync/atomic"
	"time"
)

// maxSleep bounds how long an idle engine sleeps between looks at its timers.
const maxSleep = time.Second

// sleeper tells posters whether the engine needs to be woken.
type sleeper struct {
	asleep atomic.Bool // written by the engine
}

// RunOptions are those of automatic progress.
type RunOptions struct {
	Core int           // CPU to pin the thread to; -1 for none
	Spin time.Duration // how long an idle engine spins before it sleeps
}

// Run steps the engine on a thread of its own until stop is set; then Wake it.
// Busy, it never sleeps; idle, it spins for a while and then waits in the port,
// so that an idle node costs no core. pin is called on that thread with the
// core.
func (e *Engine) Run(stop *atomic.Bool, o RunOptions, pin func(core int)) {
	runtime.LockOSThread() // never unlocked: a pinned thread ends with its goroutine
	if o.Core >= 0 {
		pin(o.Core)
	}
	idleSince := int64(0)
	for !stop.Load() {
		switch {
		case e.Step() > 0:
			idleSince = 0
		case idleSince == 0:
			idleSince = e.now
		case e.now-idleSince >= int64(o.Spin):
			e.Sleep(maxSleep)
			idleSince = e.cfg.Clock()
		}
	}
	e.publish()
}

// Sleep waits for work for at most limit, or until the next timer is due.
// Engine's thread only.
func (e *Engine) Sleep(limit time.Duration) {
	e.timers()
	d := limit
	if e.nextDue != 0 {
		d = min(d, time.Duration(e.nextDue-e.now))
	}
	if len(e.dirty) > 0 { // transmit buffers were short, or a timer has made a frame due
		d = min(d, time.Duration(timerPeriod))
	}
	if d <= 0 {
		return
	}
	// A poster publishes first and looks at asleep afterwards; we do it the other
	// way round, so one of us sees the other.
	e.sleeper.asleep.Store(true)
	if !e.waiting() {
		e.port.Wait(d)
	}
	e.sleeper.asleep.Store(false)
}

// waiting reports whether other goroutines have left work.
func (e *Engine) waiting() bool {
	if len(e.inbox) > 0 || len(e.calls) > 0 {
		return true
	}
	for _, r := range e.rings {
		if r.ops[r.head&r.mask].seq.Load() == r.head+1 {
			return true
		}
	}
	return false
}

// Notify makes the engine look at its rings soon: call it after Publish.
func (e *Engine) Notify() { e.wakeIfAsleep() }

func (e *Engine) wakeIfAsleep() {
	if e.sleeper.asleep.Load() {
		e.port.Wake()
	}
}

// Wake ends the engine's sleep, or prevents the next one.
func (e *Engine) Wake() { e.port.Wake() }
