// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func startAlone(e Engine) *Stepper {
	return New(e, Config{Manual: true, Alone: true, Core: -1, Sleep: time.Hour, Closed: func() error { return errClosed }})
}

// A caller that makes no two calls at a time gets the turn whenever it asks, until Close.
func TestAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng := newFake(t, true)
		s := startAlone(eng)
		for range 3 {
			if !s.TryHold() {
				t.Fatal("the turn is not free")
			}
			if s.TryHold() || s.Progress() != 0 {
				t.Fatal("the turn was given twice")
			}
			s.Release()
			sig := NewSignal()
			eng.post(50*time.Microsecond, sig.Raise)
			if err := s.Wait(t.Context(), &sig); err != nil {
				t.Fatal(err)
			}
			ran := false
			if s.Call(func() { ran = true }); !ran {
				t.Fatal("a call did not run")
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		sig := NewSignal()
		if err := s.Wait(ctx, &sig); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait whose context ends: %v", err)
		}
		s.Close(time.Second)
		eng.over.Store(true)
		if s.TryHold() || s.Progress() != 0 {
			t.Error("the turn could be had after Close")
		}
		if err := s.Wait(t.Context(), &sig); !errors.Is(err, errClosed) {
			t.Errorf("a wait after Close: %v", err)
		}
	})
}

// All that goroutines leave runs, in order, in one round.
func TestInterruptsAdd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startAlone(newFake(t, true))
		var ran []int
		for i := range 3 {
			s.Interrupt(func() { ran = append(ran, i) })
		}
		if len(ran) > 0 {
			t.Errorf("%v have run before the caller made progress", ran)
		}
		for range 2 {
			if s.Progress(); !slices.Equal(ran, []int{0, 1, 2}) {
				t.Errorf("%v have run, want 0, 1 and 2, once", ran)
			}
		}
		s.Close(time.Second)
	})
}

// What another goroutine leaves runs by the caller that makes progress, which may close
// the stepper there and then.
func TestInterrupt(t *testing.T) {
	for name, progress := range map[string]func(s *Stepper, sig *Signal) error{
		"a wait":   func(s *Stepper, sig *Signal) error { return s.Wait(context.Background(), sig) },
		"progress": func(s *Stepper, _ *Signal) error { time.Sleep(time.Second); s.Progress(); return errClosed },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startAlone(newFake(t, true))
				go func() {
					time.Sleep(time.Millisecond)
					s.Interrupt(func() { s.Close(time.Second) })
				}()
				sig := NewSignal()
				if err := progress(s, &sig); !errors.Is(err, errClosed) {
					t.Errorf("%v, want the error of a closed stepper", err)
				}
				if s.TryHold() {
					t.Error("the turn could be had after Close")
				}
			})
		})
	}
}
