// SPDX-License-Identifier: Apache-2.0

package progress

import "runtime"

// Call has f run on whichever thread steps the engine, and waits for it. Once the stepper
// is closed, f may not run: no sessions are left.
func (s *Stepper) Call(f func()) {
	ran := make(chan struct{})
	for !s.eng.Call(func() { f(); close(ran) }) {
		if s.phase.Load() == closed {
			return
		}
		s.Progress()
		runtime.Gosched()
	}
	if s.manual {
		s.stepFor(ran)
		return
	}
	s.Notify()
	select {
	case <-ran:
	case <-s.ended:
	}
}

// stepFor steps until ran is closed, by this goroutine or by the holder of the turn.
// If the stepper is closed meanwhile, stepFor returns only when the turn is retired:
// until then f may be running.
func (s *Stepper) stepFor(ran chan struct{}) {
	s.waiting.Add(1)
	defer s.leave()
	defer s.pass() // it may have the baton
	for {
		select {
		case <-ran:
			return
		default:
		}
		if s.take() {
			s.eng.Step()
			s.release()
			continue
		}
		select {
		case <-ran:
		case <-s.baton:
		case <-s.ended:
			return
		}
	}
}
