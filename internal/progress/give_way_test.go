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
