// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"sync/atomic"
)

// Signal is what a goroutine waits on: it polls ready, and receives from ch once
// it has set parked. The owner of the signal is the goroutine that waits.
type Signal struct {
	ready  atomic.Bool
	parked atomic.Bool
	ch     chan struct{}
}

// NewSignal returns a signal that has not been raised.
func NewSignal() Signal { return Signal{ch: make(chan struct{}, 1)} }

// Raise ends the wait, or the next one. Any thread may call it; a thread that does not
// step the engine calls Wake afterwards, since the goroutine that waits may be asleep
// in the port.
func (s *Signal) Raise() {
	s.ready.Store(true)
	if s.parked.Load() {
		select {
		case s.ch <- struct{}{}:
			Readied()
		default:
		}
	}
}

// Ready reports whether the signal has been raised.
func (s *Signal) Ready() bool { return s.ready.Load() }

// Park waits until the signal is raised, without making progress, or returns the
// context's error. Only the owner calls it.
func (s *Signal) Park(ctx context.Context) error {
	s.parked.Store(true)
	if s.Ready() {
		return nil
	}
	select {
	case <-s.ch:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Reset prepares for the next wait. Only the owner calls it.
func (s *Signal) Reset() {
	s.ready.Store(false)
	s.parked.Store(false)
	select {
	case <-s.ch:
	default:
	}
}
