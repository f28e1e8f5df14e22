// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"time"
)

// Wait returns when sig has been raised, or with the context's error, or with that of
// Config.Closed. One goroutine steps for all that wait; the others park until their
// signals are raised or the baton comes to them.
func (s *Stepper) Wait(ctx context.Context, sig *Signal) error {
	if s.alone {
		return s.waitAlone(ctx, sig)
	}
	s.waiting.Add(1)
	s.Start()
	baton := false // this goroutine has the baton
	defer func() {
		if baton {
			s.pass()
		}
		s.leave()
	}()
	for !sig.Ready() {
		if s.seize() {
			baton = false // release hands it on
			err := s.stepUntil(ctx, sig)
			s.release()
			if err != nil {
				return err
			}
			continue
		}
		sig.parked.Store(true)
		if sig.Ready() {
			break
		}
		select {
		case <-sig.ch:
		case <-s.baton:
			baton = true
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ending:
			return s.cutShort(sig)
		}
	}
	return nil
}

// leave counts a goroutine out. The poller takes over from the last one.
func (s *Stepper) leave() {
	if s.waiting.Add(-1) == 0 {
		s.rouse()
	}
}

// cutShort ends a wait because the stepper is closed; a signal that was raised
// just before still counts.
func (s *Stepper) cutShort(sig *Signal) error {
	if sig.Ready() {
		return nil
	}
	return s.closed()
}

// seize takes the turn from the poller, which gives it up within a step and is woken
// if it sleeps, or from a poster. It does not wait for another goroutine that waits,
// which may keep the turn for long.
func (s *Stepper) seize() bool {
	if s.take() {
		return true
	}
	if !s.manual {
		s.eng.Notify()
	}
	return s.takeSoon()
}

// stepUntil is the loop of the goroutine that has the turn. It looks at the context
// every so many steps, whether there is traffic or not.
func (s *Stepper) stepUntil(ctx context.Context, sig *Signal) error {
	var since time.Time // of idleness; zero when busy
	s.eng.Step()
	for steps := 1; !sig.Ready(); steps++ {
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
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.phase.Load() == closed:
			return s.cutShort(sig)
		case s.interrupt.Load() != nil:
			return nil
		case since.IsZero():
			since = time.Now()
		case time.Since(since) >= s.spin:
			s.sleep(ctx)
			since = time.Time{}
		}
	}
	return nil
}

// sleep waits in the port until something happens or the context ends.
func (s *Stepper) sleep(ctx context.Context) {
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, s.eng.Wake)()
	}
	giveWay()
	s.eng.Sleep(s.limit)
}

// WaitFor is Wait for the closing of a channel.
func (s *Stepper) WaitFor(ctx context.Context, done <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	sig := NewSignal()
	go func() {
		select {
		case <-done:
			sig.Raise()
			s.eng.Wake()
		case <-ctx.Done():
		}
	}()
	return s.Wait(ctx, &sig)
}
