// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// waitable is what goroutines wait for: a queue, a counter or a word of a region.
type waitable interface {
	satisfied(w *sleeper) bool // what w waits for is there; any thread may ask
	ended() error              // not nil if the object is closed
	// park returns when the signal has been raised, or earlier, or with an error.
	park(ctx context.Context, sig *progress.Signal) error
}

// sleeper is one that waits for a queue or counter: a goroutine in Wait, or a file
// descriptor that is armed.
type sleeper struct {
	signal  *progress.Signal // nil for the file descriptor
	stepper *node.Stepper    // whose port the goroutine may sleep in, if that may be another one than the object's
	want    uint64           // completions that can be read, or the value of a counter
	errs    uint64           // failures that are known; any other number ends the wait
	word    *awaited         // for whom waits for a word of a region
	called  atomic.Bool      // Signal was called
}

// sleepers are those that wait for one object. The thread that completes operations looks
// at count, after it has changed the object, and does no more without a waiter. One
// that comes to wait counts itself, and then looks at the object. One of the two sees the
// other.
type sleepers struct {
	count atomic.Int32 // len(list)
	kind  WaitObject   // never changes

	mu     sync.Mutex
	list   []*sleeper
	called bool // Signal was called without a waiter
	fd     progress.EventFD
	armed  sleeper // the file descriptor's
	guard  runtime.Cleanup
}

// open prepares for waits of the given kind on an object.
func (ws *sleepers) open(what string, kind WaitObject) (err error) {
	if err := kind.check(what); err != nil {
		return err
	}
	ws.kind, ws.fd.FD = kind, -1
	if kind != WaitFD {
		return nil
	}
	if ws.fd, err = progress.OpenEventFD(); err != nil {
		return fmt.Errorf("xdpfab: %s: %w", what, err)
	}
	// for an owner that only closes the domain
	ws.guard = runtime.AddCleanup(ws, progress.CloseFD, ws.fd.FD)
	return nil
}

// raise wakes those whose wait is satisfied.
func (ws *sleepers) raise(of waitable) {
	if ws.count.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i := len(ws.list) - 1; i >= 0; i-- { // from the end, since wake may remove
		if w := ws.list[i]; of.satisfied(w) {
			ws.wake(w)
		}
	}
}

// wake ends a wait. The file descriptor waits no more then: it stays readable, without
// further system calls, until it is armed again. ws.mu is held.
func (ws *sleepers) wake(w *sleeper) {
	if w.signal != nil {
		w.signal.Raise()
		if w.stepper != nil {
			w.stepper.Eng.Alert()
		}
		return
	}
	ws.fd.Raise()
	ws.remove(w)
}

// wakeAll ends every wait at the end of the object or its domain.
func (ws *sleepers) wakeAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i := len(ws.list) - 1; i >= 0; i-- {
		ws.wake(ws.list[i])
	}
}

// call ends every wait with ErrSignalled or, without one, the next.
func (ws *sleepers) call() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.called = len(ws.list) == 0
	for i := len(ws.list) - 1; i >= 0; i-- {
		w := ws.list[i]
		w.called.Store(true)
		ws.wake(w)
	}
}

// add counts a sleeper in, and remove counts it out. After remove nothing raises its
// signal.
func (ws *sleepers) add(w *sleeper) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.enter(w)
}

func (ws *sleepers) enter(w *sleeper) {
	ws.list = append(ws.list, w)
	ws.count.Add(1)
	if ws.called {
		ws.called = false
		w.called.Store(true)
	}
}

func (ws *sleepers) drop(w *sleeper) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.remove(w)
}

// remove is drop with ws.mu held.
func (ws *sleepers) remove(w *sleeper) {
	if i := slices.Index(ws.list, w); i >= 0 {
		ws.list = slices.Delete(ws.list, i, i+1)
		ws.count.Add(-1)
	}
}

// freeSleepers are sleepers with signals that nobody uses.
var freeSleepers = sync.Pool{New: func() any {
	s := progress.NewSignal()
	return &sleeper{signal: &s}
}}

// early has the error of a wait that its context ended say what was waited for, and how
// far that had come.
func early(ctx context.Context, err error, format string, args ...any) error {
	if err == nil || ctx == nil || !errors.Is(err, context.Cause(ctx)) {
		return err
	}
	return errno.Line("xdpfab: the wait for %s ended, and what was posted continues: %w", fmt.Sprintf(format, args...),
		err)
}

// wait returns when the object satisfies a sleeper with these wants, or with an error:
// the object's own if it is closed, the context's, or ErrSignalled.
func (ws *sleepers) wait(ctx context.Context, of waitable, want, errs uint64) error {
	w := freeSleepers.Get().(*sleeper)
	w.want, w.errs = want, errs
	return ws.sleep(ctx, of, w)
}

// sleep is wait as a sleeper with a signal, which it frees.
func (ws *sleepers) sleep(ctx context.Context, of waitable, w *sleeper) error {
	if err := errno.NoContext(ctx); err != nil {
		return err
	}
	w.called.Store(false)
	w.signal.Reset()
	ws.add(w)
	defer func() {
		ws.drop(w)
		w.word, w.stepper = nil, nil
		freeSleepers.Put(w)
	}()
	for !of.satisfied(w) {
		if err := of.ended(); err != nil {
			return err
		}
		if w.called.Load() {
			return ErrSignalled
		}
		if err := of.park(ctx, w.signal); err != nil {
			return err
		}
		w.signal.Reset() // before the next look, so that a signal raised after it counts
	}
	return nil
}

// step makes progress, or lets others make it, until the signal is raised; with WaitYield
// only once. The stepper is nil before an endpoint is bound to the object.
func (ws *sleepers) step(ctx context.Context, what string, st *node.Stepper, sig *progress.Signal) error {
	if st == nil {
		return fmt.Errorf("xdpfab: %s: no endpoint is bound: %w", what, ErrNotEnabled)
	}
	if ws.kind != WaitYield {
		return st.Wait(ctx, sig)
	}
	st.Progress()
	if err := st.End.Returned(); err != nil {
		return err
	}
	return yield(ctx)
}

// yield lets other goroutines run, and returns the context's error if it has ended.
func yield(ctx context.Context) error {
	runtime.Gosched()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// arm makes the file descriptor readable once the object satisfies a sleeper with these
// wants. It returns ErrAgain, and arms nothing, if the object does so already or Signal
// was called.
func (ws *sleepers) arm(of waitable, what string, want, errs uint64) error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if err := ws.usable(what); err != nil {
		return err
	}
	w := &ws.armed
	ws.fd.Lower()
	ws.remove(w)
	w.want, w.errs = want, errs
	w.called.Store(false)
	ws.enter(w)
	if of.satisfied(w) || w.called.Load() {
		ws.remove(w)
		return ErrAgain
	}
	return nil
}

// usable returns an error if there is no file descriptor. ws.mu is held.
func (ws *sleepers) usable(what string) error {
	switch {
	case ws.fd.FD >= 0:
		return nil
	case ws.kind == WaitFD:
		return errno.Refuse(ErrClosed, "xdpfab: %s: this program has closed it: make another one", what)
	}
	return errno.Refuse(ErrNotImplemented,
		"xdpfab: %s without a file descriptor: make it with WaitFD in place of %v", what, ws.kind)
}

// descriptor returns the file descriptor.
func (ws *sleepers) descriptor(what string) (int, error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.fd.FD, ws.usable(what)
}

// refuse returns an error if waiting is not allowed.
func (ws *sleepers) refuse(what string) error {
	if ws.kind == WaitNone {
		return errno.Refuse(ErrNotImplemented,
			"xdpfab: wait for a %s that was made with WaitNone: make it with another WaitObject",
			what)
	}
	return nil
}

// close wakes everything and closes the file descriptor.
func (ws *sleepers) close() {
	ws.wakeAll()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.guard.Stop()
	ws.fd.Close()
}
