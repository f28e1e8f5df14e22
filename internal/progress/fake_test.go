// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var errClosed = errors.New("closed")

// fakeEngine completes operations, which are signals to raise at some time. It fails the
// test when two threads use it at once, or one uses it after the end. Its rounds take a
// microsecond, so in a bubble of package synctest, where time is virtual, threads
// alternate.
type fakeEngine struct {
	t      testing.TB
	inside atomic.Int32
	over   atomic.Bool
	steps  atomic.Int64
	slow   bool // rounds take time
	asleep atomic.Bool
	wake   chan struct{}
	calls  chan func()
	gone   atomic.Bool // Close was called

	mu  sync.Mutex
	ops []fakeOp
}

type fakeOp struct {
	due  time.Time
	done func()
}

func newFake(t testing.TB, slow bool) *fakeEngine {
	return &fakeEngine{t: t, slow: slow, wake: make(chan struct{}, 1), calls: make(chan func(), 4)}
}

// post makes a step call done, once the time has come. Any thread may call it.
func (e *fakeEngine) post(after time.Duration, done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ops = append(e.ops, fakeOp{time.Now().Add(after), done})
}

// enter and leave bracket the methods that only the thread with the turn may
// call.
func (e *fakeEngine) enter() {
	if e.inside.Add(1) != 1 {
		e.t.Error("two threads are in the engine")
	}
	if e.over.Load() {
		e.t.Error("the engine is used after the end")
	}
}

func (e *fakeEngine) leave() { e.inside.Add(-1) }

func (e *fakeEngine) Step() int {
	e.enter()
	defer e.leave()
	e.steps.Add(1)
	if e.slow {
		time.Sleep(time.Microsecond)
	}
	n := 0
	for len(e.calls) > 0 {
		(<-e.calls)()
		n++
	}
	for _, op := range e.due() {
		op.done()
		n++
	}
	return n
}

// due takes the operations whose time has come.
func (e *fakeEngine) due() (ready []fakeOp) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, kept := time.Now(), e.ops[:0]
	for _, op := range e.ops {
		if op.due.After(now) {
			kept = append(kept, op)
		} else {
			ready = append(ready, op)
		}
	}
	e.ops = kept
	return ready
}

func (e *fakeEngine) Spin() int { return e.Step() }
func (e *fakeEngine) Poll() int { return e.Step() }

// Sleep ends when an operation is due, as that of the real engine does when a packet
// comes in.
func (e *fakeEngine) Sleep(limit time.Duration) {
	e.enter()
	defer e.leave()
	e.asleep.Store(true)
	defer e.asleep.Store(false)
	e.mu.Lock()
	for _, op := range e.ops {
		limit = min(limit, time.Until(op.due))
	}
	e.mu.Unlock()
	if limit <= 0 || len(e.calls) > 0 {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-e.wake:
	case <-timer.C:
	}
}

func (e *fakeEngine) Notify() {
	if e.asleep.Load() {
		e.Wake()
	}
}

func (e *fakeEngine) Wake() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *fakeEngine) Call(f func()) bool {
	select {
	case e.calls <- f:
		e.Wake()
		return true
	default:
		return false
	}
}

func (e *fakeEngine) Close()     { e.gone.Store(true) }
func (e *fakeEngine) Idle() bool { return e.gone.Load() }

// start returns a stepper of e that sleeps for an hour unless it is woken, so that
// a lost wake-up shows.
func start(e Engine, manual bool) *Stepper {
	return New(e, Config{Manual: manual, Core: -1, Sleep: time.Hour, Closed: func() error { return errClosed }})
}
