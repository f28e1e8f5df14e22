// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"sync"
	"sync/atomic"
	"time"
)

// Engine is what a stepper needs of an engine; *engine.Engine implements it. The first
// group of methods is for the thread that has the turn, the second for any thread.
type Engine interface {
	Step() int                 // one round; returns how much there was to do
	Spin() int                 // Step for a caller that calls again at once
	Poll() int                 // Step for a caller that may call again at once, or much later
	Sleep(limit time.Duration) // until there is something to do
	Close()                    // ends every session
	Idle() bool                // nothing is left to be sent; only the thread that has the turn asks

	Notify()          // something was posted: ends Sleep
	Wake()            // ends Sleep, or prevents the next one
	Call(func()) bool // makes a coming round run a function; false if too many wait
}

// Config describes how an engine is stepped.
type Config struct {
	Manual bool // without a poller
	// Alone means that the caller makes no two calls at a time (FI_THREAD_DOMAIN). With
	// manual progress, the turn then needs no atomic instruction. The exceptions are
	// Interrupt, and the methods of a Signal.
	Alone bool
	Core  int           // of the poller; negative leaves the choice to the kernel
	Spin  time.Duration // how long an idle engine is stepped before it sleeps
	Sleep time.Duration // the longest sleep of an idle engine; 0 means a second
	// Closed returns the error of waits that Close cuts short.
	Closed func() error
	// Fault is told of the poller's access to mapped memory that is not there (SIGBUS,
	// SIGSEGV), by its address, before the process ends with a panic; nil for the
	// runtime's own fatal error.
	Fault func(addr uintptr)
}

// Stepper ensures that only one thread at a time steps an engine, and that one does as
// long as it is needed. See the package comment for its states.
type Stepper struct {
	eng    Engine
	closed func() error
	fault  func(addr uintptr)
	manual bool
	pinned bool // the poller has a core of its own
	alone  bool // Config.Alone, with manual progress: held takes the place of turn
	held   bool
	spin   time.Duration
	limit  time.Duration // of a sleep

	turn    atomic.Uint32 // free, held or retired
	phase   atomic.Uint32 // open, draining or closed
	waiting atomic.Int32  // goroutines in Wait, or in Call with manual progress
	// attending is the number of goroutines in Attend that may have the poller's place.
	attending atomic.Int32
	more      atomic.Bool // operations were posted, and no thread was told
	napping   atomic.Bool // the poller is in a deep nap; written by it
	others    neighbours  // of the thread that has the turn
	gaveWay   time.Time   // when a thread that had the turn last gave way at times
	polls     neighbours  // the same for Progress, whose caller may never sleep

	baton  chan struct{}  // tells one of the waiting goroutines that the turn is free
	roused chan struct{}  // ends the nap
	ending chan struct{}  // closed when phase becomes closed
	ended  chan struct{}  // closed when the turn is retired
	poller sync.WaitGroup // done when the poller has ended

	interrupt atomic.Pointer[func()] // see Interrupt
}

// States of the turn.
const (
	free    = iota
	held    // by the thread that steps the engine, or posts to it
	retired // forever
)

// Phases of the life of a stepper.
const (
	open     = iota
	draining // the last answers leave
	closed   // no thread may step
)

// lookAround is how many steps go by between looks at the clock and the context.
const lookAround = 64

// New returns a stepper, and starts its poller unless progress is manual. Close ends it.
func New(e Engine, c Config) *Stepper {
	s := &Stepper{eng: e, closed: c.Closed, fault: c.Fault, manual: c.Manual, pinned: c.Core >= 0,
		alone: c.Manual && c.Alone, spin: c.Spin, limit: c.Sleep, others: neighbours{sleeps: true},
		baton: make(chan struct{}, 1), roused: make(chan struct{}, 1), ending: make(chan struct{}),
		ended: make(chan struct{})}
	if s.limit == 0 {
		s.limit = time.Second
	}
	steppers.Add(1)
	if !s.manual {
		s.poller.Go(func() { s.poll(c.Core) })
	}
	return s
}

// Progress steps the engine once, if progress is manual and no other thread steps, and
// returns how much there was to do. In any case it starts deferred posts.
func (s *Stepper) Progress() int {
	s.runInterrupt()
	s.Start()
	if !s.manual || !s.take() {
		return 0
	}
	n := s.eng.Poll()
	if n == 0 {
		s.polls.idle()
	}
	s.Release()
	giveReadied()
	return n
}

// Notify tells the thread that steps that an operation was posted that no goroutine waits
// for yet. A caller alone has no such thread.
func (s *Stepper) Notify() {
	if s.alone {
		return
	}
	s.eng.Notify()
	if s.waiting.Load() == 0 {
		s.rouse()
	}
}

// Defer postpones Notify: a later call of Start, which Progress and Wait include, tells
// that thread.
func (s *Stepper) Defer() {
	if !s.alone && !s.more.Load() {
		s.more.Store(true)
	}
}

// Start makes up for the Notify that Defer postponed. A caller that posts while the mark
// is being taken away is covered as well, since the thread that steps looks at the rings
// afterwards.
func (s *Stepper) Start() {
	if s.more.Load() {
		s.more.Store(false)
		s.Notify()
	}
}

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
	s.held = s.alone // forever
	for !s.turn.CompareAndSwap(free, retired) {
		s.eng.Wake() // the thread that has the turn may be asleep in the port
		time.Sleep(shortNap)
	}
	close(s.ended)
	steppers.Add(-1)
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
