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
	end    *end // the domain's
	manual bool
	spin   time.Duration

	busy    atomic.Bool
	callers atomic.Int32  // goroutines in wait
	baton   chan struct{} // tells one of those who wait that busy is free
	napping atomic.Bool   // the poller is in a deep nap; written by it
	roused  chan struct{} // ends the nap
	more    atomic.Bool   // operations were posted with FlagMore, and nobody was told

	stop   atomic.Bool   // set by close: nobody is to step any more
	closed chan struct{} // closed along with it
	gone   chan struct{} // closed when the poller has ended
}

// maxSleep bounds how long an idle engine sleeps between looks at its timers. It is
// a variable for tests: with an hour, a wake-up that gets lost shows.
var maxSleep = time.Second

const (
	// The poller keeps off for shortNap, and twice as long each time up to longNap,
	// while goroutines step for themselves. From deepNap on it is roused when the
	// last of them leaves: rarely, then, if they come and go all the time.
	shortNap = 50 * time.Microsecond
	deepNap  = time.Millisecond
	longNap  = 20 * time.Millisecond
	// lookAround is how many idle steps go by between looks at the clock and the
	// context.
	lookAround = 64
)

func newDriver(e *engine.Engine, manual bool, core int, spin time.Duration) *driver {
	d := &driver{eng: e, manual: manual, spin: spin, baton: make(chan struct{}, 1), roused: make(chan struct{}, 1),
		closed: make(chan struct{}), gone: make(chan struct{})}
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
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for nap := shortNap; !d.stop.Load(); {
		if d.callers.Load() > 0 || !d.busy.CompareAndSwap(false, true) {
			nap = d.keepOff(timer, nap)
			continue
		}
		d.pollUntilWanted()
		d.release(0)
		nap = shortNap
	}
}

// keepOff lets a nap go by and returns how long the next one may be.
func (d *driver) keepOff(timer *time.Timer, nap time.Duration) time.Duration {
	timer.Reset(nap)
	d.napping.Store(nap >= deepNap)
	defer d.napping.Store(false)
	select {
	case <-timer.C:
		return min(2*nap, longNap)
	case <-d.roused:
		return shortNap
	}
}

// rouse ends a deep nap.
func (d *driver) rouse() {
	if d.napping.Load() {
		select {
		case d.roused <- struct{}{}:
		default:
		}
	}
}

// notify tells whoever steps that something was posted that nobody waits for yet.
func (d *driver) notify() {
	d.eng.Notify()
	if d.callers.Load() == 0 {
		d.rouse()
	}
}

// pollUntilWanted steps until a goroutine waits, or the driver stops.
func (d *driver) pollUntilWanted() {
	var since time.Time // of idleness; zero when busy
	d.eng.Step()
	for steps := 1; d.callers.Load() == 0 && !d.stop.Load(); steps++ {
		if d.eng.Spin() > 0 {
			since = time.Time{}
		}
		if steps%lookAround != 0 {
			continue
		}
		if since.IsZero() {
			since = time.Now()
		} else if time.Since(since) >= d.spin {
			d.eng.Sleep(maxSleep)
			since = time.Time{}
		}
	}
}

// progress steps the engine once, when progress is manual and nobody else does.
func (d *driver) progress() int {
	d.start()
	if !d.manual || !d.busy.CompareAndSwap(false, true) {
		return 0
	}
	n := d.eng.Step()
	d.release(0)
	return n
}

// tryHold takes busy if it is free, for a moment: release must follow. It does not wait.
func (d *driver) tryHold() bool {
	return !d.busy.Load() && d.busy.CompareAndSwap(false, true)
}

// release gives busy up, and the baton to a goroutine that may wait for it. One that waits has
// counted itself before it found busy taken, so it shows in callers here; self is 1
// when the caller is among those counted.
func (d *driver) release(self int32) {
	d.busy.Store(false)
	if d.callers.Load() > self {
		d.pass()
	}
}

// pass hands the baton on. A spare one does no harm.
func (d *driver) pass() {
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
	holds := false // the baton
	defer func() {
		if holds {
			d.pass()
		}
		if d.callers.Add(-1) == 0 {
			d.rouse()
		}
	}()
	for !s.ready.Load() {
		if d.seize() {
			holds = false // release hands it on
			err := d.stepUntil(ctx, s)
			d.release(1)
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
			holds = true
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-d.closed:
			return d.closedError(s)
		}
	}
	return nil
}

// closedError ends a wait that the driver's end cuts short; what was raised just
// before counts.
func (d *driver) closedError(s *signal) error {
	if s.ready.Load() {
		return nil
	}
	return d.end.closed()
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

// stepUntil is the loop of the goroutine that holds busy. It looks at the context
// every so many steps, whether there is traffic or not.
func (d *driver) stepUntil(ctx context.Context, s *signal) error {
	var since time.Time // of idleness; zero when busy
	d.eng.Step()
	for steps := 1; !s.ready.Load(); steps++ {
		if d.eng.Spin() > 0 {
			since = time.Time{}
		}
		if steps%lookAround != 0 {
			continue
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case d.stop.Load():
			return d.closedError(s)
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= d.spin:
			d.sleep(ctx)
			since = time.Time{}
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
			d.eng.Wake() // the goroutine that steps may be asleep in the port
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
	d.notify()
	select {
	case <-ran:
	case <-d.closed:
	}
}

// stepFor steps until ran is closed, by this goroutine or by the one that holds
// busy.
func (d *driver) stepFor(ran chan struct{}) {
	d.callers.Add(1)
	defer d.callers.Add(-1)
	defer d.pass()
	for {
		select {
		case <-ran:
			return
		default:
		}
		if d.busy.CompareAndSwap(false, true) {
			d.eng.Step()
			d.release(1)
			continue
		}
		select {
		case <-ran:
		case <-d.baton:
		case <-d.closed:
			return
		}
	}
}

// close ends every session, lets farewells and last answers leave for at most
// limit, and sees to it that nobody steps the engine any more: it takes busy and
// keeps it. Callers that wait are released.
func (d *driver) close(limit time.Duration) {
	d.call(d.eng.Close)
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(shortNap) {
		idle := false
		d.call(func() { idle = d.eng.Idle() })
		if idle {
			break
		}
	}
	d.stop.Store(true)
	close(d.closed)
	if !d.manual {
		d.notify()
		d.eng.Wake()
		<-d.gone
	}
	for !d.busy.CompareAndSwap(false, true) {
		d.eng.Wake() // whoever holds it may be asleep in the port
		time.Sleep(shortNap)
	}
}
