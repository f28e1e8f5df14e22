// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"
)

// The turn can be held when it is free, until Close begins; and while one thread holds
// it, no other steps.
func TestTryHold(t *testing.T) {
	eng := newFake(t, false)
	s := start(eng, true)
	for range 2 {
		if !s.TryHold() {
			t.Fatal("the turn is free, and cannot be held")
		}
		if s.TryHold() {
			t.Error("the turn is held twice")
		}
		if s.Progress(); eng.steps.Load() != 0 {
			t.Error("another thread steps while the turn is held")
		}
		s.Release()
	}
	s.phase.Store(draining)
	if s.TryHold() {
		t.Error("the turn can be held while last answers leave")
	}
	if s.Progress(); eng.steps.Load() != 1 {
		t.Error("nobody steps while last answers leave")
	}
	s.Close(time.Second)
	if s.TryHold() {
		t.Error("the turn can be held after Close")
	}
}

// Posting allocates nothing.
func TestTryHoldAllocatesNothing(t *testing.T) {
	s := start(newFake(t, false), true)
	if n := testing.AllocsPerRun(100, func() {
		if s.TryHold() {
			s.Release()
		}
		s.Notify()
		s.Defer()
		s.Start()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
