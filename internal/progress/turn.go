// SPDX-License-Identifier: Apache-2.0

package progress

// TryHold takes the turn for a moment, without waiting, so that the caller may use the
// engine as its own thread does. It returns false when somebody else has the turn, or
// Close has begun. The caller calls Release soon, without blocking in between.
//
// The looks before the compare-and-swap spare the cache line of a thread that steps.
func (s *Stepper) TryHold() bool {
	return s.phase.Load() == open && s.turn.Load() == free && s.turn.CompareAndSwap(free, held)
}

// Release gives the turn up. A goroutine that waits has counted itself before it found
// the turn taken, so it shows in the count here, and is told. What the caller has left in the
// engine is sent by the next step: Notify or Defer says so, as after any other post.
func (s *Stepper) Release() {
	s.turn.Store(free)
	if s.waiting.Load() > 0 {
		s.pass()
	}
}

// take takes the turn if it is free.
func (s *Stepper) take() bool {
	return s.turn.Load() == free && s.turn.CompareAndSwap(free, held)
}

// takeSoon is take for a caller that would have to park otherwise: a poster lets go
// within less than that takes.
func (s *Stepper) takeSoon() bool {
	for range 100 {
		if s.take() {
			return true
		}
	}
	return false
}

// release is Release by a goroutine that is counted itself.
func (s *Stepper) release() {
	s.turn.Store(free)
	if s.waiting.Load() > 1 {
		s.pass()
	}
}

// pass hands the baton on. A spare one does no harm.
func (s *Stepper) pass() {
	select {
	case s.baton <- struct{}{}:
	default:
	}
}
