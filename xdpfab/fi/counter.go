// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// Counter counts completions instead of listing them; fi_cntr(3). Of the operations of
// the endpoints bound to it, it counts those that succeeded, or their bytes (Read), and
// those that failed (ReadErr). After the greatest value it begins at 0 again
// (DomainInfo.MaxCounter).
type Counter struct {
	object
	bytes bool // it counts the bytes of what succeeded
	owner atomic.Pointer[node.Stepper]
	value gauge[uint64]
	errs  gauge[uint64]
	due   atomic.Uint64 // the lowest threshold that is waited for; see triggers.setDue

	waiting waiting // deferred work, under triggers.mu
	works   int     // places of deferred work that need the counter; under triggers.mu

	sleepers sleepers
}

// CounterAttr are the attributes of a counter.
type CounterAttr struct {
	Events CounterEvents // what it counts; CountCompletions
	Wait   WaitObject    // how callers wait; WaitUnspec
}

// CounterEvents is what a counter counts (enum fi_cntr_events).
type CounterEvents uint8

// The events.
const (
	CountCompletions CounterEvents = iota // operations (FI_CNTR_EVENTS_COMP)
	// CountBytes counts the bytes of the operations, receives and work that succeeded:
	// those of the result, or of the operand if there is none, without remote CQ data
	// (FI_CNTR_EVENTS_BYTES). A failure counts as one in ReadErr. Of what peers do it
	// counts the bytes that they have read or changed, frame by frame where an operation
	// takes several.
	CountBytes
)

// NewCounter makes a counter of value 0 (fi_cntr_open). Without attributes it has the
// zero CounterAttr; more than one are refused.
func (d *Domain) NewCounter(attr ...CounterAttr) (*Counter, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	var a CounterAttr
	if len(attr) > 1 {
		return nil, errno.Refuse(ErrNotImplemented,
			"xdpfab: counter with %d attributes: want one, or none", len(attr))
	}
	if len(attr) == 1 {
		a = attr[0]
	}
	if a.Events > CountBytes {
		return nil, errno.Refuse(ErrNotImplemented,
			"xdpfab: counter of events %d: want CountCompletions or CountBytes", a.Events)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return nil, err
	}
	c := &Counter{bytes: a.Events == CountBytes}
	d.isolate(nil, []*gauge[uint64]{&c.value, &c.errs})
	c.due.Store(math.MaxUint64)
	if err := c.sleepers.open("counter", a.Wait); err != nil {
		return nil, err
	}
	c.open(d, "counter", &c.sleepers)
	return c, nil
}

// Attr returns the attributes in force.
func (c *Counter) Attr() CounterAttr {
	a := CounterAttr{Wait: c.sleepers.kind}
	if c.bytes {
		a.Events = CountBytes
	}
	return a
}

// Read returns the number of operations that succeeded, or of their bytes (fi_cntr_read).
// With manual progress the call makes progress.
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
func (c *Counter) Add(n uint64) { c.count(n, 0) }

// Set sets the value (fi_cntr_set).
func (c *Counter) Set(n uint64) {
	c.dom.node.CountPeers() // before the call
	c.value.Store(n)
	if n >= c.due.Load() {
		c.dom.triggers.fire(c)
	}
	c.notify()
}

// AddErr increases the number of failures (fi_cntr_adderr).
func (c *Counter) AddErr(n uint64) { c.errs.Add(n); c.notify() }

// SetErr sets the number of failures (fi_cntr_seterr).
func (c *Counter) SetErr(n uint64) { c.errs.Store(n); c.notify() }

// succeeded counts n operations of so many bytes each. Any thread.
func (c *Counter) succeeded(n int, bytes uint64) {
	if c.bytes {
		c.count(uint64(n)*bytes, 0)
		return
	}
	c.count(uint64(n), 0)
}

// count records operations that succeeded, and operations that failed, and starts the
// work that waits for the new value. Any thread.
func (c *Counter) count(successes, failures uint64) {
	if successes > 0 && c.value.Add(successes) >= c.due.Load() {
		c.dom.triggers.fire(c)
	}
	if failures > 0 {
		c.errs.Add(failures)
	}
	c.notify()
}

// notify wakes the sleepers whose wait is over.
func (c *Counter) notify() {
	if c.sleepers.count.Load() == 0 {
		return
	}
	c.sleepers.raise(c)
	if st := c.owner.Load(); st != nil {
		st.Eng.Alert() // a caller that waits may be asleep in the port of another engine
	}
}

func (c *Counter) satisfied(w *sleeper) bool {
	return c.value.Load() >= w.want || c.errs.Load() != w.errs || c.closed.Load()
}

// Wait returns when the value has reached threshold (fi_cntr_wait). It returns
// ErrErrorPending when an operation fails meanwhile, or an error that wraps the
// context's, and tells the value. Failures from before the call do not end it: see
// WaitFrom.
func (c *Counter) Wait(ctx context.Context, threshold uint64) error {
	if err := c.there(); err != nil {
		return err
	}
	return c.WaitFrom(ctx, threshold, c.errs.Load())
}

// WaitFrom is like Wait, but returns ErrErrorPending as soon as the number of failures
// differs from errs, which ReadErr returned before the operations were posted. So a
// failure before the call ends the wait too.
func (c *Counter) WaitFrom(ctx context.Context, threshold, errs uint64) error {
	if err := c.there(); err != nil {
		return err
	}
	if err := c.sleepers.refuse(c.what); err != nil {
		return err
	}
	c.owner.CompareAndSwap(nil, c.dom.node.Steppers[0]) // the program alone may move the counter
	c.dom.Progress()                                    // the operations may be on other queues
	if err := c.sleepers.wait(ctx, c, threshold, errs); err != nil {
		return early(ctx, err, "a counter to reach %d, which is at %d with %d failures,", threshold, c.value.Load(),
			c.errs.Load())
	}
	if c.value.Load() < threshold {
		if err := c.ended(); err != nil {
			return err
		}
		return fmt.Errorf("%w: the counter, at %d of %d, has counted %d failures: want %d", ErrErrorPending,
			c.value.Load(), threshold, c.errs.Load(), errs)
	}
	return nil
}

func (c *Counter) park(ctx context.Context, sig *progress.Signal) error {
	return c.sleepers.step(ctx, c.what, c.owner.Load(), sig)
}

// FD returns the file descriptor of a counter that was made with WaitFD, to be armed with
// TryWait. See CompletionQueue.FD.
func (c *Counter) FD() (int, error) {
	if err := c.there(); err != nil {
		return 0, err
	}
	return c.sleepers.descriptor(c.what)
}

// TryWait arms the file descriptor (fi_trywait): it becomes readable when the value has
// reached threshold, or the number of failures differs from errs. ErrAgain means that one
// of them is so already. See CompletionQueue.TryWait.
func (c *Counter) TryWait(threshold, errs uint64) error {
	if err := c.there(); err != nil {
		return err
	}
	if err := c.sleepers.refuse(c.what); err != nil {
		return err
	}
	c.dom.Progress()
	return c.arm(c, threshold, errs)
}

// Close ends the use of the counter. It reports ErrBusy as long as an endpoint is
// bound, or deferred work needs it. Callers that wait are released, and the file
// descriptor is closed. Closing twice is no error.
func (c *Counter) Close() error {
	if err := c.there(); err != nil {
		return err
	}
	err := c.closeIdle()
	if err == nil {
		c.notify()
		c.sleepers.close()
	}
	return err
}

// closeIdle closes the counter, unless something needs it.
func (c *Counter) closeIdle() error {
	t := &c.dom.triggers
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.works > 0 && !c.closed.Load() {
		return errno.Refuse(ErrBusy,
			"xdpfab: counter: deferred work needs it: wait for that work, or cancel it with CancelWork "+
				"or FlushWork")
	}
	return c.close()
}
