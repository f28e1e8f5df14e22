// SPDX-License-Identifier: Apache-2.0

package progress

import "time"

// Attend returns when sig has been raised, or with the error of Config.Closed. It is for
// goroutines that wait for what peers send, for as long as it takes. One of them has the
// poller's place: it steps, so what comes does not have to pass to another thread, and
// gives the turn up to goroutines that wait for their own operations. With manual
// progress, or a poller that has a core of its own, Attend leaves the steps to others.
func (s *Stepper) Attend(sig *Signal) error {
	if !s.manual && !s.pinned {
		s.attending.Add(1)
		s.attend(sig)
		if s.attending.Add(-1) == 0 {
			s.rouse()
		}
	}
	sig.parked.Store(true)
	if sig.Ready() {
		return nil
	}
	select {
	case <-sig.ch:
		return nil
	case <-s.ending:
		return s.cutShort(sig)
	}
}

// attend steps, or naps while others do, until the signal is raised or the stepper is
// closed. All naps are short: nobody ends them but the signal.
func (s *Stepper) attend(sig *Signal) {
	var timer *time.Timer
	for nap := shortNap; !sig.Ready() && s.phase.Load() != closed; {
		if s.waiting.Load() == 0 && s.seize() {
			s.stepUntilWanted(sig)
			s.Release()
			nap = shortNap
			continue
		}
		if timer == nil {
			timer = time.NewTimer(nap)
			defer timer.Stop()
		}
		timer.Reset(nap)
		sig.parked.Store(true)
		if sig.Ready() {
			return
		}
		select {
		case <-sig.ch:
		case <-timer.C:
			nap = min(2*nap, deepNap)
		case <-s.ending:
		}
	}
}
