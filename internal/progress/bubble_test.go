// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// plan is what goroutines do with a stepper in a bubble, where time is virtual: a round
// of the engine takes a microsecond, and everything else takes no time.
type plan struct {
	Manual  bool
	Waiters []waiterPlan
	Attend  []waiterPlan // the same for what peers send, without contexts
	Posters []posterPlan
	Close   time.Duration // when it is closed; 0 means at the end
}

// waiterPlan is a goroutine that waits for one operation after another.
type waiterPlan struct {
	Start time.Duration
	Ops   []opPlan
}

type opPlan struct {
	Takes   time.Duration
	Context time.Duration // it ends after so long; 0 means a second, which is too late
}

// posterPlan is a goroutine that posts operations that nobody waits for, and, with manual
// progress, calls Progress now and then until they have completed.
type posterPlan struct {
	Start, Every time.Duration
	Posts        int
	Hold         time.Duration // of the turn, if it is free
	Defer        bool
}

func drawPlan(rt *rapid.T) plan {
	span := func(name string, most int) time.Duration {
		// The times are whole rounds and parts of them, so that threads meet at all
		// places.
		return time.Duration(rapid.IntRange(0, most).Draw(rt, name)) * 250 * time.Nanosecond
	}
	p := plan{Manual: rapid.Bool().Draw(rt, "manual")}
	for range rapid.IntRange(0, 4).Draw(rt, "waiters") {
		w := waiterPlan{Start: span("start", 20_000)}
		for range rapid.IntRange(1, 5).Draw(rt, "operations") {
			o := opPlan{Takes: span("takes", 2000)}
			if rapid.IntRange(0, 3).Draw(rt, "takes long") == 0 {
				o.Takes *= 100
			}
			if rapid.IntRange(0, 3).Draw(rt, "with a context") == 0 {
				o.Context = span("context", 2000) + 1
			}
			w.Ops = append(w.Ops, o)
		}
		p.Waiters = append(p.Waiters, w)
	}
	for range rapid.IntRange(0, 2).Draw(rt, "attend") {
		w := waiterPlan{Start: span("start", 20_000)}
		for range rapid.IntRange(1, 5).Draw(rt, "requests") {
			w.Ops = append(w.Ops, opPlan{Takes: span("takes", 20_000)})
		}
		p.Attend = append(p.Attend, w)
	}
	for range rapid.IntRange(0, 3).Draw(rt, "posters") {
		p.Posters = append(p.Posters, posterPlan{
			Start: span("start", 20_000), Every: span("every", 2000), Posts: rapid.IntRange(1, 10).Draw(rt, "posts"),
			Hold: span("hold", 40), Defer: rapid.Bool().Draw(rt, "defer"),
		})
	}
	if rapid.Bool().Draw(rt, "closed early") {
		p.Close = 1 + span("close", 30_000)
	}
	return p
}

const (
	// Some thread steps as long as a goroutine waits: it learns that its operation is
	// complete within the rounds that it takes to find an idle engine asleep, look at
	// contexts, and pass the turn.
	promptly = 300 * time.Microsecond
	// An operation that nobody waits for may have to wait for the end of a nap that is
	// not deep.
	inTime = 2 * deepNap
)

// run carries a plan out, and collects its errors.
type run struct {
	*testing.T
	plan plan
	eng  *fakeEngine
	s    *Stepper

	mu     sync.Mutex
	wrong  []error
	closed bool // or about to be
}

func (r *run) fail(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wrong = append(r.wrong, fmt.Errorf(format, args...))
}

func (r *run) isClosed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed
}

func (r *run) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	began := time.Now()
	r.s.Close(time.Second)
	if took := time.Since(began); took > inTime {
		r.fail("Close took %v", took)
	}
	r.eng.over.Store(true)
	if r.s.TryHold() {
		r.fail("the turn could be had after Close")
	}
	r.s.Progress()
	r.s.Call(func() { r.fail("a call ran after Close") })
}

func (r *run) waiter(w waiterPlan) {
	time.Sleep(w.Start)
	for _, o := range w.Ops {
		r.wait(o)
	}
}

// wait posts an operation and waits for it.
func (r *run) wait(o opPlan) {
	ends := time.Second
	if o.Context > 0 {
		ends = o.Context
	}
	limit := min(o.Takes, ends)
	ctx, cancel := context.WithTimeout(context.Background(), ends)
	defer cancel()
	sig := NewSignal()
	began := time.Now()
	r.eng.post(o.Takes, sig.Raise)
	if r.plan.Manual { // a poller is told by Wait
		r.eng.Notify()
	}
	err := r.s.Wait(ctx, &sig)
	took := time.Since(began)
	switch {
	case errors.Is(err, errClosed):
		if !r.isClosed() {
			r.fail("a wait ends as if it had been closed")
		}
	case err == nil && !sig.Ready():
		r.fail("a wait ends well, and nothing was raised")
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		r.fail("a wait ends with %v", err)
	case err != nil && took < ends:
		r.fail("a wait ends with its context, %v too early", ends-took)
	}
	if took > limit+promptly && !r.isClosed() {
		r.fail("a wait that could end after %v took %v", limit, took)
	}
}

// attends waits for what peers send. With manual progress it makes none itself, and
// others do while they have something to wait for.
func (r *run) attends(w waiterPlan) {
	time.Sleep(w.Start)
	for _, o := range w.Ops {
		sig := NewSignal()
		began := time.Now()
		r.eng.post(o.Takes, sig.Raise)
		r.eng.Notify() // what comes in ends the sleep in the port
		switch err := r.s.Attend(&sig); {
		case errors.Is(err, errClosed):
			if !r.isClosed() {
				r.fail("what attends ends as if it had been closed")
			}
			return
		case err != nil || !sig.Ready():
			r.fail("what attends ends with %v", err)
		}
		if took := time.Since(began); took > o.Takes+inTime && !r.isClosed() && !r.plan.Manual {
			r.fail("what came after %v was known after %v", o.Takes, took)
		}
	}
}

func (r *run) poster(p posterPlan) {
	time.Sleep(p.Start)
	for range p.Posts {
		r.post(p)
		time.Sleep(p.Every)
	}
}

// post posts an operation that nobody waits for, directly if the turn is free.
func (r *run) post(p posterPlan) {
	posted := time.Now()
	done := make(chan struct{})
	complete := func() {
		if took := time.Since(posted); took > inTime && !r.isClosed() {
			r.fail("what was posted was done after %v", took)
		}
		close(done)
	}
	if r.s.TryHold() {
		r.eng.enter()
		time.Sleep(p.Hold)
		r.eng.post(0, complete)
		r.eng.leave()
		r.s.Release()
	} else {
		r.eng.post(0, complete)
	}
	if p.Defer {
		r.s.Defer()
		r.s.Start()
	} else {
		r.s.Notify()
	}
	for {
		r.s.Progress()
		select {
		case <-done:
			return
		case <-r.s.ended:
			return
		case <-time.After(10 * time.Microsecond):
		}
	}
}

// carryOut carries a plan out and returns its errors.
func carryOut(t *testing.T, p plan) error {
	var err error
	synctest.Test(t, func(t *testing.T) {
		r := &run{T: t, plan: p, eng: newFake(t, true)}
		r.s = start(r.eng, p.Manual)
		var all sync.WaitGroup
		for _, w := range p.Waiters {
			all.Go(func() { r.waiter(w) })
		}
		var attend sync.WaitGroup
		for _, w := range p.Attend {
			attend.Go(func() { r.attends(w) })
		}
		for _, w := range p.Posters {
			all.Go(func() { r.poster(w) })
		}
		if p.Close > 0 {
			time.Sleep(p.Close)
			r.close()
		}
		all.Wait()
		if !p.Manual {
			attend.Wait()
		}
		if p.Close == 0 {
			r.close()
		}
		attend.Wait()
		err = errors.Join(r.wrong...)
	})
	return err
}

func TestPlans(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		if err := carryOut(t, drawPlan(rt)); err != nil {
			rt.Fatal(err)
		}
	})
}

// While goroutines step for themselves all the time, the poller naps for longer and
// longer. When the last of them has left, the poller steps at once.
func TestDeepNapIsRoused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		eng := newFake(t, true)
		s := start(eng, false)
		began := time.Now()
		sig := NewSignal()
		eng.post(3*longNap, sig.Raise)
		if err := s.Wait(context.Background(), &sig); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > 3*longNap+promptly {
			t.Errorf("the wait took %v", took)
		}
		left, done := time.Now(), make(chan struct{})
		eng.post(0, func() { close(done) }) // a packet comes in: nobody calls Notify
		<-done
		if took := time.Since(left); took > promptly {
			t.Errorf("the poller was back after %v", took)
		}
		s.Close(time.Second)
	})
}
