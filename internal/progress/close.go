// SPDX-License-Identifier: Apache-2.0

package progress

import "time"

// Close ends every session, waits for at most limit until farewells and last answers have
// left, and retires the turn, so that no thread steps the engine again. Goroutines that
// wait are released. It is called once.
func (s *Stepper) Close(limit time.Duration) {
	s.phase.Store(draining)
	s.drain(limit)
	s.phase.Store(closed)
	close(s.ending)
	s.eng.Wake()
	s.poller.Wait()
	s.held = s.alone // for ever
	for !s.turn.CompareAndSwap(free, retired) {
		s.eng.Wake() // the thread that has the turn may be asleep in the port
		time.Sleep(shortNap)
	}
	close(s.ended)
}

// drain returns when nothing is left to be sent, or the time is up.
func (s *Stepper) drain(limit time.Duration) {
	s.Call(s.eng.Close)
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(shortNap) {
		idle := false
		s.Call(func() { idle = s.eng.Idle() })
		if idle {
			return
		}
	}
}
