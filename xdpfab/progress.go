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

// driver decides which thread steps an engine.
type driver struct {
	eng    *engine.Engine
	manual bool
	spin   time.Duration

	// Automatic progress.
	stop atomic.Bool
	gone chan struct{} // closed when the thread has ended

	// Manual progress: whoever holds busy steps; the baton tells one of those
	// who wait that it is free.
	busy  atomic.Bool
	baton chan struct{}
}

func newDriver(e *engine.Engine, manual bool, core int, spin time.Duration) *driver {
	d := &driver{eng: e, manual: manual, spin: spin, gone: make(chan struct{}), baton: make(chan struct{}, 1)}
	if !manual {
		go func() {
			defer close(d.gone)
			e.Run(&d.stop, engine.RunOptions{Core: core, Spin: spin}, pinThread)
		}()
	}
	return d
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

func newSignal() *signal { return &signal{ch: make(chan struct{}, 1)} }

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

// wait returns when s is ready, or with the context's error.
func (d *driver) wait(ctx context.Context, s *signal) error {
	if d.manual {
		return d.waitManual(ctx, s)
	}
	for i := 0; i < parkAfter; i++ {
		if s.ready.Load() {
			return nil
		}
	}
	s.parked.Store(true)
	for !s.ready.Load() {
		select {
		case <-s.ch:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// parkAfter is how often a waiter looks before it parks: a microsecond or so,
// since a poller on another core is to have this one's time.
const parkAfter = 1000

// waitManual steps the engine until s is ready. One goroutine steps for all that
// wait; the others park until theirs is ready or the baton comes to them.
func (d *driver) waitManual(ctx context.Context, s *signal) error {
	for !s.ready.Load() {
		if d.busy.CompareAndSwap(false, true) {
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

// stepUntil is the loop of the goroutine that holds busy.
func (d *driver) stepUntil(ctx context.Context, s *signal) error {
	idle := 0
	stop := func() bool { return true }
	defer func() { stop() }()
	var since time.Time
	for !s.ready.Load() {
		if d.eng.Step() > 0 {
			idle = 0
			continue
		}
		if idle++; idle < 64 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if idle == 64 { // only now: short waits are not to pay for it
			if ctx.Done() != nil {
				stop()
				stop = context.AfterFunc(ctx, d.eng.Wake)
			}
			since = time.Now()
			continue
		}
		if idle%64 == 0 && time.Since(since) >= d.spin {
			d.eng.Sleep(time.Second)
			since = time.Now()
		}
		if idle%1024 == 0 {
			runtime.Gosched()
		}
	}
	return nil
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
