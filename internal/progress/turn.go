// SPDX-License-Identifier: Apache-2.0

package progress

// TryHold takes the turn for a moment, without waiting, so that the caller may use the
// engine as its own thread does. It returns false when another thread has the turn, or
// Close has begun. The caller calls Release soon, without blocking in between.
//
// Looking before the compare-and-swap spares the thread that steps the loss of its
// cache line.
func (s *Stepper) TryHold() bool {
	if s.alone {
		return s.phase.Load() == open && s.holdAlone()
	}
	return s.phase.Load() == open && s.turn.Load() == free && s.turn.CompareAndSwap(free, held)
}

// Release gives the turn up. A goroutine that waits has counted itself before it found
// the turn taken, so it shows in the count here, and gets the baton. The operations that
// the caller has posted to the engine are sent by the next step: the caller calls Notify
// or Defer, as after any other post.
func (s *Stepper) Release() {
	if s.alone {
		s.held = false
		return
	}
	s.turn.Store(free)
	if s.waiting.Load() > 0 {
		s.pass()
	}
}

// take takes the turn if it is free.
func (s *Stepper) take() bool {
	if s.alone {
		return s.holdAlone()
	}
	return s.turn.Load() == free && s.turn.CompareAndSwap(free, held)
}

// takeSoon is take for a caller that would have to park otherwise: a poster gives
// the turn up in less time than parking takes.
func (s *Stepper) takeSoon() bool {
	for range 100 {
		if s.take() {
			return true
		}
	}
	return false
}

// release is Release for a goroutine that is itself counted in waiting.
func (s *Stepper) release() {
	if s.alone {
		s.held = false
		return
	}
	s.turn.Store(free)
	if s.waiting.Load() > 1 {
		s.pass()
	}
}

// pass hands the baton on. A baton too many does no harm.
func (s *Stepper) pass() {
	select {
	case s.baton <- struct{}{}:
	default:
	}
}
