// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"testing"
)

// parkingContext runs f when a wait is about to park: after it has looked at its signal,
// before its select.
type parkingContext struct {
	context.Context
	f func()
}

func (c parkingContext) Done() <-chan struct{} { c.f(); return nil }

// A goroutine that takes the baton and then finds its signal raised passes the baton on.
// If it kept the baton, the others would wait forever, while the poller keeps off.
func TestBatonIsPassedOn(t *testing.T) {
	lost := 0
	for range 1000 {
		s := start(newFake(t, false), true)
		if !s.TryHold() { // another goroutine steps
			t.Fatal("the turn of a new stepper is not free")
		}
		sig := NewSignal()
		// It completes the operation of sig and its own, and leaves.
		ctx := parkingContext{context.Background(), func() { sig.Raise(); s.Release() }}
		if err := s.Wait(ctx, &sig); err != nil {
			t.Fatal(err)
		}
		if len(s.baton) == 0 && s.turn.Load() == free {
			lost++
		}
	}
	if lost > 0 {
		t.Errorf("the baton got lost in %d of 1000 rounds", lost)
	}
}
