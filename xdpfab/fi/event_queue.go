// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/progress"
)

// EventQueue collects events of the domains and endpoints bound to it; fi_eq(3): ends of
// asynchronous calls, and the loss of an interface. It never overflows, so there is no
// FI_EOVERRUN: a call that ends with an event is accepted only if the event has a place.
// Any number of goroutines may read, wait and write.
type EventQueue struct {
	fabric *Fabric
	attr   EQAttr

	sleepers sleepers
	length   atomic.Int64 // len(events), for those that wait
	closed   atomic.Bool  // written under mu

	mu       sync.Mutex
	events   []Event
	promised int       // places for events to come
	users    int       // domains and endpoints bound
	driven   []*Domain // that make progress when the queue is read, once for each object that needs it
}

// eventQueue is what errors call an event queue.
const eventQueue = "event queue"

// NewEventQueue makes an event queue (fi_eq_open), for domains of the fabric.
func (f *Fabric) NewEventQueue(attr EQAttr) (*EventQueue, error) {
	if err := f.there(); err != nil {
		return nil, err
	}
	n, err := queueSize(eventQueue+": Size", attr.Size)
	if err != nil {
		return nil, err
	}
	attr.Size = n
	q := &EventQueue{fabric: f, attr: attr}
	if err := q.sleepers.open(eventQueue, attr.Wait); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queues = append(f.queues, q)
	return q, nil
}

// Attr returns the attributes in force.
func (q *EventQueue) Attr() EQAttr { return q.attr }

// Read takes the next event (fi_eq_read). ok is false when there is none. When an error
// event is next it returns ErrErrorPending: take it with ReadErr.
func (q *EventQueue) Read() (e Event, ok bool, err error) {
	if err := q.there(); err != nil {
		return e, ok, err
	}
	return q.next(true)
}

// Peek is Read without taking the event (FI_PEEK).
func (q *EventQueue) Peek() (e Event, ok bool, err error) {
	if err := q.there(); err != nil {
		return e, ok, err
	}
	return q.next(false)
}

func (q *EventQueue) next(take bool) (e Event, ok bool, err error) {
	q.progress()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case len(q.events) == 0:
		return e, false, nil
	case q.events[0].Err != nil:
		return e, false, ErrErrorPending
	case !take:
		return q.events[0], true, nil
	}
	return q.pop(), true, nil
}

// ReadErr takes the error event that is next (fi_eq_readerr). ok is false when the next
// one is no error event, or there is none.
func (q *EventQueue) ReadErr() (e Event, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 || q.events[0].Err == nil {
		return e, false
	}
	return q.pop(), true
}

// pop takes the first event. q.mu is held.
func (q *EventQueue) pop() Event {
	e := q.events[0]
	q.events = slices.Delete(q.events, 0, 1)
	q.length.Add(-1)
	return e
}

// Wait returns when an event, with or without an error, can be read (fi_eq_sread), or
// with the context's error. An event that one goroutine has read is gone for others, who
// wait again.
func (q *EventQueue) Wait(ctx context.Context) error {
	if err := q.there(); err != nil {
		return err
	}
	if err := q.sleepers.refuse(eventQueue); err != nil {
		return err
	}
	return early(ctx, q.sleepers.wait(ctx, q, 1, 0), "an event")
}

func (q *EventQueue) satisfied(*sleeper) bool { return q.length.Load() > 0 }

func (q *EventQueue) park(ctx context.Context, sig *progress.Signal) error {
	if q.progress() || q.attr.Wait == WaitYield {
		return yield(ctx)
	}
	return sig.Park(ctx)
}

// progress moves domains with manual progress on, whose connections make events, as long
// as there are no events. It reports whether there are such domains.
func (q *EventQueue) progress() bool {
	q.mu.Lock()
	driven, full := q.driven, len(q.events) > 0
	q.mu.Unlock()
	for i := 0; i < len(driven) && !full; i++ {
		driven[i].Progress()
	}
	return len(driven) > 0
}

// drive has the queue make progress for a domain with manual progress, and undrive undoes
// that.
func (q *EventQueue) drive(d *Domain) {
	if d.attr.Progress == ProgressManual {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.driven = append(slices.Clip(q.driven), d)
	}
}

func (q *EventQueue) undrive(d *Domain) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if i := slices.Index(q.driven, d); i >= 0 {
		q.driven = slices.Delete(slices.Clone(q.driven), i, i+1)
	}
}

// use counts an object that is bound to the queue, and unuse one that is no more.
func (q *EventQueue) use() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.ended(); err != nil {
		return err
	}
	q.users++
	return nil
}

func (q *EventQueue) unuse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.users--
}

// FD returns the file descriptor of a queue that was made with WaitFD (FI_GETWAIT), to be
// armed with TryWait. See CompletionQueue.FD.
func (q *EventQueue) FD() (int, error) {
	if err := q.there(); err != nil {
		return 0, err
	}
	return q.sleepers.descriptor(eventQueue)
}

// TryWait arms the file descriptor (fi_trywait): it becomes readable when an event can be
// read. ErrAgain means that one can be read already. See CompletionQueue.TryWait.
func (q *EventQueue) TryWait() error {
	if err := q.there(); err != nil {
		return err
	}
	if err := q.sleepers.refuse(eventQueue); err != nil {
		return err
	}
	return q.sleepers.arm(q, eventQueue, 1, 0)
}

// Write adds an event of the program's own (fi_eq_write). An event with an Err is an
// error event. It fails with ErrAgain when the queue is full, and with ErrNotImplemented
// unless the queue was made with EQAttr.Write.
func (q *EventQueue) Write(e Event) error {
	if err := q.there(); err != nil {
		return err
	}
	if !q.attr.Write {
		return errno.Refuse(ErrNotImplemented, "xdpfab: event queue: write: make it with EQAttr.Write")
	}
	if err := q.promise(1); err != nil {
		return err
	}
	q.deliver(e)
	return nil
}

// promise takes places for n events to come.
func (q *EventQueue) promise(n int) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.reserve(n)
}

// reserve is promise with q.mu held.
func (q *EventQueue) reserve(n int) error {
	if err := q.ended(); err != nil {
		return err
	}
	if n > q.attr.Size {
		return errno.Refuse(ErrCount,
			"xdpfab: event queue of size %d for %d events at once: make it larger", q.attr.Size,
			n)
	}
	if len(q.events)+q.promised+n > q.attr.Size {
		return ErrAgain
	}
	q.promised += n
	return nil
}

// release gives back places that were promised.
func (q *EventQueue) release(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.promised -= n
}

// deliver adds an event that a place was promised for.
func (q *EventQueue) deliver(e Event) {
	q.mu.Lock()
	q.promised--
	q.events = append(q.events, e)
	q.length.Add(1)
	q.mu.Unlock()
	q.sleepers.raise(q)
}

func (q *EventQueue) ended() error {
	if q.closed.Load() {
		return errno.Refuse(ErrClosed, "xdpfab: event queue: this program has closed it: make another one")
	}
	return nil
}

// Close ends the use of the queue. It reports ErrBusy as long as a domain or an endpoint
// is bound. Events that have not been read are lost, callers that wait are released, and
// the file descriptor is closed. Closing twice is no error.
func (q *EventQueue) Close() error {
	if err := q.there(); err != nil {
		return err
	}
	q.mu.Lock()
	if q.users > 0 {
		defer q.mu.Unlock()
		return errno.Refuse(ErrBusy, "xdpfab: event queue: %d domains and endpoints are bound, close them first",
			q.users)
	}
	q.closed.Store(true)
	q.events = nil
	q.length.Store(0)
	q.mu.Unlock()
	q.sleepers.close()
	q.fabric.mu.Lock()
	defer q.fabric.mu.Unlock()
	q.fabric.queues = slices.DeleteFunc(q.fabric.queues, func(x *EventQueue) bool { return x == q })
	return nil
}
