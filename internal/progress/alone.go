// SPDX-License-Identifier: Apache-2.0

package progress

import "context"

// holdAlone takes the turn for a caller that makes no two calls at a time: it is free,
// unless the caller comes from a function that the engine called, or Close has retired
// it.
func (s *Stepper) holdAlone() bool {
	if s.held {
		return false
	}
	s.held = true
	return true
}

// waitAlone is Wait for such a caller.
func (s *Stepper) waitAlone(ctx context.Context, sig *Signal) error {
	s.Start()
	for !sig.Ready() {
		s.runInterrupt()
		if !s.take() {
			return s.cutShort(sig)
		}
		err := s.stepUntil(ctx, sig)
		s.release()
		if err != nil {
			return err
		}
	}
	return nil
}

// Interrupt has f run before the next round, in place of a goroutine of its own, by the
// goroutine that makes progress, which does not have the turn then. It is for
// Config.Alone, since other waits do not run f. Any goroutine may call it. What has not
// run yet runs before f.
func (s *Stepper) Interrupt(f func()) {
	for {
		before, all := s.interrupt.Load(), f
		if before != nil {
			all = func() { (*before)(); f() }
		}
		if s.interrupt.CompareAndSwap(before, &all) {
			break
		}
	}
	s.eng.Wake()
}

// runInterrupt runs what Interrupt left.
func (s *Stepper) runInterrupt() {
	if s.interrupt.Load() == nil {
		return
	}
	if f := s.interrupt.Swap(nil); f != nil {
		(*f)()
	}
}
