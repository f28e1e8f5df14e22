// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A goroutine that waits for its own operation takes the turn from one that attends, and
// that one has it again afterwards, in place of the poller.
func TestAttendGivesTheTurnUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng := newFake(t, true)
		s := start(eng, false)
		request, ended := NewSignal(), make(chan error)
		go func() { ended <- s.Attend(&request) }()
		time.Sleep(time.Second)
		for range 100 {
			sig := NewSignal()
			began := time.Now()
			eng.post(10*time.Microsecond, sig.Raise)
			if err := s.Wait(context.Background(), &sig); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > promptly {
				t.Errorf("a wait of 10 µs took %v", took)
			}
		}
		time.Sleep(time.Second)
		if n := s.attending.Load(); n != 1 {
			t.Errorf("%d goroutines attend", n)
		}
		began := time.Now()
		eng.post(0, request.Raise)
		eng.Notify()
		if err := <-ended; err != nil || time.Since(began) > promptly {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
		done := make(chan struct{})
		eng.post(0, func() { close(done) })
		began = time.Now()
		<-done // the poller is back
		if took := time.Since(began); took > inTime {
			t.Errorf("the poller was back after %v", took)
		}
		s.Close(time.Second)
		if err := s.Attend(new(NewSignal())); err == nil {
			t.Error("the stepper is closed, and nobody says so")
		}
	})
}

// Where others make progress, a goroutine that attends leaves it to them.
func TestAttendWithoutPlace(t *testing.T) {
	for name, c := range map[string]Config{"manual": {Manual: true, Core: -1}, "a core": {Core: 0}} {
		t.Run(name, func(t *testing.T) {
			eng := newFake(t, false)
			c.Sleep, c.Closed = time.Hour, func() error { return errClosed }
			s := New(eng, c)
			sig, ended := NewSignal(), make(chan error)
			go func() { ended <- s.Attend(&sig) }()
			until(sig.parked.Load)
			if n := s.attending.Load(); n != 0 {
				t.Errorf("%d goroutines have the poller's place", n)
			}
			eng.post(0, sig.Raise)
			if eng.Notify(); c.Manual {
				for s.Progress() == 0 {
				}
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
			s.Close(time.Second)
		})
	}
}
