// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"github.com/xdpfab/xdpfab/internal/progress"

	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Counter counts completions instead of listing them; fi_cntr(3). Of the operations of
// the endpoints bound to it, it counts those that succeeded (Read) and those that failed
// (ReadErr).
type Counter struct {
	object
	owner atomic.Pointer[stepper]
	value atomic.Uint64
	errs  atomic.Uint64

	mu      sync.Mutex
	waiters map[*counterWait]struct{}
	waiting atomic.Int32 // len(waiters)
}

// counterWait is a goroutine in Wait.
type counterWait struct {
	progress.Signal
	threshold uint64
	errs      uint64 // failures that the caller knows of: any other number ends the wait
}

// NewCounter makes a counter of value 0 (fi_cntr_open).
func (d *Domain) NewCounter() (*Counter, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.open(); err != nil {
		return nil, err
	}
	c := &Counter{waiters: map[*counterWait]struct{}{}}
	c.open(d, "counter")
	return c, nil
}

// Read returns the number of operations that succeeded (fi_cntr_read). With manual
// progress the call makes progress.
func (c *Counter) Read() uint64 {
	c.dom.Progress()
	return c.value.Load()
}

// ReadErr returns the number of operations that failed (fi_cntr_readerr). With manual
// progress the call makes progress.
func (c *Counter) ReadErr() uint64 {
	c.dom.Progress()
	return c.errs.Load()
}

// Add increases the value (fi_cntr_add).
func (c *Counter) Add(n uint64) { c.value.Add(n); c.notify() }

// Set sets the value (fi_cntr_set).
func (c *Counter) Set(n uint64) { c.value.Store(n); c.notify() }

// AddErr increases the number of failures (fi_cntr_adderr).
func (c *Counter) AddErr(n uint64) { c.errs.Add(n); c.notify() }

// SetErr sets the number of failures (fi_cntr_seterr).
func (c *Counter) SetErr(n uint64) { c.errs.Store(n); c.notify() }

// count notes operations that succeeded, and operations that failed. Engine's thread.
func (c *Counter) count(successes, failures uint64) {
	if successes > 0 {
		c.value.Add(successes)
	}
	if failures > 0 {
		c.errs.Add(failures)
	}
	c.notify()
}

// notify raises the signals of the waiters whose wait is over.
func (c *Counter) notify() {
	if c.waiting.Load() == 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for w := range c.waiters {
		if c.over(w) {
			w.Raise()
		}
	}
	if st := c.owner.Load(); st != nil {
		st.eng.Notify() // a caller that waits may be asleep in the port of another engine
	}
}

func (c *Counter) over(w *counterWait) bool {
	return c.value.Load() >= w.threshold || c.errs.Load() != w.errs || c.closed.Load()
}

// Wait returns when the value has reached threshold (fi_cntr_wait). It returns
// ErrErrorPending when an operation fails meanwhile, or the context's error. Failures
// from before the call do not end it: see WaitFrom.
func (c *Counter) Wait(ctx context.Context, threshold uint64) error {
	return c.WaitFrom(ctx, threshold, c.errs.Load())
}

// WaitFrom is like Wait, but returns ErrErrorPending as soon as the number of failures
// differs from errs, which ReadErr returned before the operations were posted. So a
// failure before the call ends the wait too.
func (c *Counter) WaitFrom(ctx context.Context, threshold, errs uint64) error {
	w := &counterWait{Signal: progress.NewSignal(), threshold: threshold, errs: errs}
	c.mu.Lock()
	c.waiters[w] = struct{}{}
	c.mu.Unlock()
	c.waiting.Add(1)
	defer func() {
		c.mu.Lock()
		delete(c.waiters, w)
		c.mu.Unlock()
		c.waiting.Add(-1)
	}()
	if !c.over(w) {
		c.dom.Progress() // the operations may be on other queues
		st := c.owner.Load()
		if st == nil {
			return fmt.Errorf("xdpfab: counter: no endpoint is bound: %w", ErrNotEnabled)
		}
		if err := st.Wait(ctx, &w.Signal); err != nil {
			return err
		}
	}
	if c.value.Load() < threshold {
		if err := c.ended(); err != nil {
			return err
		}
		return fmt.Errorf("%w: the counter, at %d of %d, has counted %d failures: want %d", ErrErrorPending, c.value.Load(), threshold, c.errs.Load(), errs)
	}
	return nil
}

// Close ends the use of the counter. It reports ErrBusy as long as an endpoint is
// bound. Callers that wait are released. Closing twice is no error.
func (c *Counter) Close() error {
	err := c.close()
	if err == nil {
		c.notify()
	}
	return err
}
