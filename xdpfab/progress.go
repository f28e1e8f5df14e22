// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// Progress says who moves a domain's operations on; the constants are those of
// fi_domain(3).
type Progress uint8

const (
	// ProgressAuto is a poller thread for each queue, pinned to a core. It spins
	// while there is work and sleeps when there is none.
	ProgressAuto Progress = iota
	// ProgressManual leaves it to the goroutines that read completions or wait.
	// No hand-over between cores: the lowest latency. A domain whose memory others
	// address needs one that calls Progress or waits.
	ProgressManual
)

// driver decides which thread steps an engine: whoever holds busy. With manual
// progress that is one of the goroutines that wait or read. With automatic
// progress it is the poller, except while goroutines wait for an operation: then
// one of them steps, because handing a result from core to core would cost more
// than the round trip itself, and the poller keeps off.
type driver struct {
	eng    *engine.Engine
	manual bool
	spin   time.Duration

	busy    atomic.Bool
	callers atomic.Int32  // goroutines in wait
	baton   chan struct{} // tells one of those who wait that busy is free

	stop atomic.Bool   // ends the poller
	gone chan struct{} // closed when the poller has ended
}

const (
	// maxSleep bounds how long an idle engine sleeps between looks at its timers.
	maxSleep = time.Second
	// nap is how long the poller keeps off when goroutines step for themselves.
	nap = 50 * time.Microsecond
	// lookAround is how many idle steps go by between looks at the clock and the
	// context.
	lookAround = 64
)

func newDriver(e *engine.Engine, manual bool, core int, spin time.Duration) *driver {
	d := &driver{eng: e, manual: manual, spin: spin, gone: make(chan struct{}), baton: make(chan struct{}, 1)}
	if !manual {
		go d.poll(core)
	}
	return d
}

// poll is the poller's thread. Busy, it never sleeps; idle, it spins for a while
// and then waits in the port, so that an idle node costs no core.
func (d *driver) poll(core int) {
	defer close(d.gone)
	runtime.LockOSThread() // never unlocked: a pinned thread ends with its goroutine
	if core >= 0 {
		pinThread(core)
	}
	for !d.stop.Load() {
		if d.callers.Load() > 0 || !d.busy.CompareAndSwap(false, true) {
			time.Sleep(nap)
			continue
		}
		d.pollUntilWanted()
		d.release()
	}
}

// pollUntilWanted steps until a goroutine waits, or the driver stops.
func (d *driver) pollUntilWanted() {
	var since time.Time
	for idle := 0; d.callers.Load() == 0 && !d.stop.Load(); idle++ {
		switch {
		case d.eng.Step() > 0:
			idle = 0
		case idle == lookAround:
			since = time.Now()
		case idle > lookAround && idle%lookAround == 0 && time.Since(since) >= d.spin:
			d.eng.Sleep(maxSleep)
			idle = 0
		}
	}
}

// progress steps the engine once, when progress is manual and nobody else does.
func (d *driver) progress() int {
	if !d.manual || !d.busy.CompareAndSwap(false, true) {
		return 0
	}
	n := d.eng.Step()
	d.release()
	return n
}

func (d *driver) release() {
	d.busy.Store(false)
	select {
	case d.baton <- struct{}{}:
	default:
	}
}

// signal is what a goroutine waits on: ready is polled, ch is received from
// once parked says so. Its owner is the goroutine that waits.
type signal struct {
	ready  atomic.Bool
	parked atomic.Bool
	ch     chan struct{}
}

func newSignal() signal { return signal{ch: make(chan struct{}, 1)} }

// raise ends the wait. Engine's thread.
func (s *signal) raise() {
	s.ready.Store(true)
	if s.parked.Load() {
		select {
		case s.ch <- struct{}{}:
		default:
		}
	}
}

// reset prepares for the next wait.
func (s *signal) reset() {
	s.ready.Store(false)
	s.parked.Store(false)
	select {
	case <-s.ch:
	default:
	}
}

// wait returns when s is ready, or with the context's error. One goroutine steps
// for all that wait; the others park until theirs is ready or the baton comes to
// them.
func (d *driver) wait(ctx context.Context, s *signal) error {
	d.callers.Add(1)
	defer d.callers.Add(-1)
	for !s.ready.Load() {
		if d.seize() {
			err := d.stepUntil(ctx, s)
			d.release()
			if err != nil {
				return err
			}
			continue
		}
		s.parked.Store(true)
		if s.ready.Load() {
			break
		}
		select {
		case <-s.ch:
		case <-d.baton:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// seize takes busy. A poller that holds it lets go within a step: that is waited
// for, and hastened if it sleeps. Another goroutine may keep it for long.
func (d *driver) seize() bool {
	if d.busy.CompareAndSwap(false, true) {
		return true
	}
	if d.manual {
		return false
	}
	d.eng.Notify()
	for range 100 {
		if d.busy.CompareAndSwap(false, true) {
			return true
		}
	}
	return false
}

// stepUntil is the loop of the goroutine that holds busy.
func (d *driver) stepUntil(ctx context.Context, s *signal) error {
	var since time.Time
	for idle := 0; !s.ready.Load(); idle++ {
		if d.eng.Step() > 0 {
			idle = 0
			continue
		}
		if idle < lookAround || idle%lookAround != 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		switch {
		case idle == lookAround:
			since = time.Now()
		case time.Since(since) >= d.spin:
			d.sleep(ctx)
			idle = 0
		}
	}
	return nil
}

// sleep waits in the port until something happens or the context ends.
func (d *driver) sleep(ctx context.Context) {
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, d.eng.Wake)()
	}
	d.eng.Sleep(maxSleep)
}

// waitFor returns when done is closed, or with the context's error, and makes
// progress meanwhile.
func (d *driver) waitFor(ctx context.Context, done <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := newSignal()
	go func() {
		select {
		case <-done:
			s.raise()
			d.eng.Wake() // who steps may be asleep in the port
		case <-ctx.Done():
		}
	}()
	return d.wait(ctx, &s)
}

// call has f run on whichever thread steps the engine, and waits for it. Once the
// driver is closed it does nothing: there are no sessions any more.
func (d *driver) call(f func()) {
	ran := make(chan struct{})
	for !d.eng.Call(func() { f(); close(ran) }) {
		if d.stop.Load() {
			return
		}
		d.progress()
		runtime.Gosched()
	}
	if d.manual {
		d.stepFor(ran)
		return
	}
	select {
	case <-ran:
	case <-d.gone:
	}
}

// stepFor steps until ran is closed, by this goroutine or by the one that holds
// busy.
func (d *driver) stepFor(ran chan struct{}) {
	for {
		select {
		case <-ran:
			return
		default:
		}
		if d.busy.CompareAndSwap(false, true) {
			d.eng.Step()
			d.release()
			continue
		}
		select {
		case <-ran:
		case <-d.baton:
		}
	}
}

// close ends every session, lets farewells and last answers leave for at most
// limit, and stops the thread.
func (d *driver) close(limit time.Duration) {
	d.call(d.eng.Close)
	for end := time.Now().Add(limit); time.Now().Before(end); {
		idle := false
		d.call(func() { idle = d.eng.Idle() })
		if idle {
			break
		}
	}
	if !d.manual {
		d.stop.Store(true)
		d.eng.Wake()
		<-d.gone
	}
}
