// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// readyEngine makes another goroutine ready in its rounds, and records whether that one
// has run when the engine goes to sleep.
type readyEngine struct {
	*fakeEngine
	other  atomic.Bool // the goroutine was made
	ran    atomic.Bool
	asleep chan bool // whether it had run, at the first sleep
}

func (e *readyEngine) Spin() int {
	if !e.other.Swap(true) {
		go e.ran.Store(true)
	}
	return e.Step()
}

func (e *readyEngine) Sleep(limit time.Duration) {
	select {
	case e.asleep <- e.ran.Load():
	default:
	}
	e.fakeEngine.Sleep(min(limit, time.Millisecond))
}

// A thread that sleeps in the port keeps the processor. If Go has no other, goroutines
// that are ready run before.
func TestReadyGoroutinesRunBeforeASleep(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for name, manual := range map[string]bool{"the poller sleeps": false, "a goroutine that waits sleeps": true} {
		t.Run(name, func(t *testing.T) {
			eng := &readyEngine{fakeEngine: newFake(t, false), asleep: make(chan bool, 1)}
			s := start(eng, manual)
			sig := NewSignal()
			if manual {
				go func() { _ = s.Wait(t.Context(), &sig) }()
			}
			if !<-eng.asleep {
				t.Error("the engine went to sleep, and a goroutine that was ready had not run")
			}
			sig.Raise()
			s.Close(time.Second)
		})
	}
}

// A goroutine that a round makes ready runs before many more rounds, if Go has one
// processor: not only when the thread that steps has been idle for long.
func TestReadiedGoroutinesRunSoon(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const most, trials = 1000, 9 // rounds; the runtime gives way by itself after some 10 ms, which is more
	for name, manual := range map[string]bool{"by the poller": false, "by a goroutine that waits": true} {
		t.Run(name, func(t *testing.T) {
			eng := newFake(t, false)
			s := New(eng, Config{Manual: manual, Core: -1, Spin: time.Hour, Sleep: time.Hour,
				Closed: func() error { return errClosed }})
			waits := NewSignal()
			if manual {
				go func() { _ = s.Wait(t.Context(), &waits) }()
			}
			soon := 0
			for range trials {
				took := make(chan int64, 1)
				eng.post(0, func() {
					before := eng.steps.Load()
					go func() { took <- eng.steps.Load() - before }()
					Readied()
				})
				s.Notify()
				if <-took <= most {
					soon++
				}
			}
			if soon <= trials/2 {
				t.Errorf("%d of %d goroutines ran within %d rounds", soon, trials, most)
			}
			waits.Raise()
			s.Close(time.Second)
		})
	}
}

// busyEngine always has something to do.
type busyEngine struct{ *fakeEngine }

func (e busyEngine) Spin() int { return 1 + e.Step() }

// A goroutine that is ready for another reason, here a timer, runs before many more
// rounds of an engine that is never idle.
func TestOtherGoroutinesRunSoon(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const most, trials = 100_000, 9 // rounds, of which a millisecond has 30,000 or so
	for name, manual := range map[string]bool{"beside the poller": false, "beside a goroutine that waits": true} {
		t.Run(name, func(t *testing.T) {
			eng := newFake(t, false)
			s := New(busyEngine{eng}, Config{Manual: manual, Core: -1, Spin: time.Hour, Sleep: time.Hour,
				Closed: func() error { return errClosed }})
			waits := NewSignal()
			if manual {
				go func() { _ = s.Wait(t.Context(), &waits) }()
			}
			soon := 0
			for range trials {
				before := eng.steps.Load()
				time.Sleep(100 * time.Microsecond)
				if eng.steps.Load()-before <= most {
					soon++
				}
			}
			if soon <= trials/2 {
				t.Errorf("%d of %d goroutines ran within %d rounds", soon, trials, most)
			}
			waits.Raise()
			s.Close(time.Second)
		})
	}
}

// So does a goroutine that is parked until a signal is raised.
func TestParkedGoroutinesRunSoon(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const most, trials = 1000, 9
	eng := newFake(t, false)
	s := New(eng, Config{Manual: true, Core: -1, Spin: time.Hour, Sleep: time.Hour,
		Closed: func() error { return errClosed }})
	steps, parked := NewSignal(), NewSignal()
	go func() { _ = s.Wait(t.Context(), &steps) }()
	soon := 0
	for range trials {
		parked.Reset()
		var before int64
		go func() {
			for !parked.parked.Load() {
				runtime.Gosched()
			}
			eng.post(0, func() {
				before = eng.steps.Load()
				parked.Raise()
			})
		}()
		if err := parked.Park(t.Context()); err != nil {
			t.Fatal(err)
		}
		if eng.steps.Load()-before <= most {
			soon++
		}
	}
	if soon <= trials/2 {
		t.Errorf("%d of %d goroutines ran within %d rounds", soon, trials, most)
	}
	steps.Raise()
	s.Close(time.Second)
}
