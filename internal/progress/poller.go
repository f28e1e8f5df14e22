// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"runtime"
	"runtime/debug"
	"time"
)

// The poller keeps off for shortNap, and twice as long each time up to longNap, while
// goroutines step for themselves, or attend. From deepNap on, the last goroutine to leave
// rouses it: that is rare if goroutines come and go all the time.
const (
	shortNap = 50 * time.Microsecond
	deepNap  = time.Millisecond
	longNap  = 20 * time.Millisecond
)

// poll is the poller's thread. A busy poller never sleeps; an idle one spins for a while
// and then waits in the port, so that an idle node does not occupy a core.
func (s *Stepper) poll(core int) {
	runtime.LockOSThread() // never unlocked: a pinned thread ends with its goroutine
	if core >= 0 {
		pinThread(core)
	}
	if s.fault != nil {
		debug.SetPanicOnFault(true)
		defer s.tellFault()
	}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for nap := shortNap; s.phase.Load() != closed; {
		if s.waiting.Load() > 0 || s.attending.Load() > 0 {
			nap = s.keepOff(timer, nap)
		} else if s.takeSoon() {
			s.stepUntilWanted(nil)
			s.Release()
			nap = shortNap
		} else { // a poster has the turn, or a goroutine that has begun to wait
			s.keepOff(timer, shortNap)
		}
	}
}

// tellFault tells of the memory whose access has ended the poller, and lets the panic go
// on.
func (s *Stepper) tellFault() {
	cause := recover()
	if cause == nil {
		return
	}
	if at, is := cause.(interface{ Addr() uintptr }); is {
		s.fault(at.Addr())
	}
	panic(cause)
}

// keepOff lets a nap go by and returns how long the next one may be.
func (s *Stepper) keepOff(timer *time.Timer, nap time.Duration) time.Duration {
	if nap >= deepNap {
		s.napping.Store(true)
		defer s.napping.Store(false)
		if s.waiting.Load() == 0 && s.attending.Load() == 0 { // the last one left before it could see the nap
			return shortNap
		}
	}
	timer.Reset(nap)
	select {
	case <-timer.C:
		return min(2*nap, longNap)
	case <-s.roused:
	case <-s.ending:
	}
	return shortNap
}

// rouse ends a deep nap.
func (s *Stepper) rouse() {
	if s.napping.Load() {
		select {
		case s.roused <- struct{}{}:
		default:
		}
	}
}

// unwanted reports whether the thread that has the turn may keep it: the poller, or a
// goroutine that attends until a signal is raised.
func (s *Stepper) unwanted(sig *Signal) bool {
	if s.waiting.Load() > 0 || s.phase.Load() == closed {
		return false
	}
	if sig == nil {
		return s.attending.Load() == 0
	}
	return !sig.Ready()
}

// stepUntilWanted steps as long as the thread may keep the turn.
func (s *Stepper) stepUntilWanted(sig *Signal) {
	var since time.Time // of idleness; zero when busy
	s.eng.Step()
	for steps := 1; s.unwanted(sig); steps++ {
		shared := false
		if s.eng.Spin() > 0 {
			since = time.Time{}
		} else {
			shared = s.others.idle()
		}
		giveReadied()
		if steps%lookAround != 0 && !shared {
			continue
		}
		s.giveWayAtTimes()
		if since.IsZero() {
			since = time.Now()
		} else if time.Since(since) >= s.spin {
			giveWay()
			if s.unwanted(sig) {
				s.eng.Sleep(s.limit)
			}
			since = time.Time{}
		}
	}
}
