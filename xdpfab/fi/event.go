// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/mr"
)

// EventKind is the kind of an event; see fi_eq(3).
type EventKind uint32

// The kinds of events that the package itself delivers, with libfabric's numbers.
// EventQueue.Write takes any number.
const (
	EventNotify     EventKind = 0 // FI_NOTIFY: as an error event, the interface is lost
	EventConnReq    EventKind = 1 // FI_CONNREQ: a request for a connection
	EventConnected  EventKind = 2 // FI_CONNECTED; as an error event, there will be no connection
	EventShutdown   EventKind = 3 // FI_SHUTDOWN: the peer has ended the connection, or is gone
	EventMRComplete EventKind = 4 // FI_MR_COMPLETE: Domain.RegisterAsync has ended
	EventAVComplete EventKind = 5 // FI_AV_COMPLETE: AddressVector.InsertAsync has ended
)

// String returns the name of the kind, or its number.
func (k EventKind) String() string {
	switch k {
	case EventNotify:
		return "notify"
	case EventConnReq:
		return "connreq"
	case EventConnected:
		return "connected"
	case EventShutdown:
		return "shutdown"
	case EventMRComplete:
		return "mr_complete"
	case EventAVComplete:
		return "av_complete"
	}
	return fmt.Sprintf("EventKind(%d)", uint32(k))
}

// Event is an entry of an event queue (fi_eq_entry, and fi_eq_err_entry if it has an
// error).
type Event struct {
	Kind    EventKind
	Source  any    // the *Domain, *AddressVector, *endpoint or *PassiveEndpoint that the event is about (fid)
	Context any    // of the call that has ended, or of Source
	Data    uint64 // of an inserted vector: how many were inserted; with an error, the index of the address
	// Addresses are those that InsertAsync has inserted, in the order given; NoAddress
	// stands for one that failed.
	Addresses []Address
	Region    *mr.Region   // that RegisterAsync has registered
	Request   *ConnRequest // of an EventConnReq
	// Param is what the peer gave to Connect, of an EventConnReq, to Accept, of an
	// EventConnected, or to Reject, if that has an error (data of fi_eq_cm_entry,
	// err_data).
	Param []byte
	// Err is nil, except for events that ReadErr returns. ErrnoOf returns its code (err),
	// and its text says more (fi_eq_strerror). prov_errno is empty.
	Err error
}

// EQAttr are the attributes of an event queue.
type EQAttr struct {
	// Size is the most events that may be waiting to be read, or promised to calls under
	// way; more are refused with ErrAgain. It is rounded up to a power of two; 1024.
	Size  int
	Write bool       // the program may write events of its own (FI_WRITE)
	Wait  WaitObject // how callers wait; WaitUnspec
}

// eventLink binds a domain or endpoint to an event queue, where a place is kept for the
// event of its end. A lock of its owner guards it.
type eventLink struct {
	queue *EventQueue // nil for none
	told  bool        // the event has been delivered
}

// link binds a queue. what is the owner, f its fabric.
func (l *eventLink) link(q *EventQueue, f *Fabric, what string) error {
	switch {
	case q == nil:
		return fmt.Errorf("xdpfab: %s: nothing to bind: %w", what, ErrNoEQ)
	case q.fabric != f:
		return errno.Refuse(ErrForeign, "xdpfab: %s: the event queue is of another fabric: want one of the same",
			what)
	case l.queue != nil:
		return errno.Refuse(ErrBusy, "xdpfab: %s has an event queue: want one", what)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.reserve(1); err != nil {
		return err
	}
	q.users++
	l.queue = q
	return nil
}

// tell delivers the loss of the interface, once; source is the owner, and context that of
// its attributes.
func (l *eventLink) tell(source, context any, cause error) {
	if l.queue != nil && !l.told && errors.Is(cause, ErrInterfaceLost) {
		l.told = true
		l.queue.deliver(Event{Kind: EventNotify, Source: source, Context: context, Err: cause})
	}
}

// cut undoes link, when the owner has ended.
func (l *eventLink) cut() {
	if l.queue == nil {
		return
	}
	l.queue.mu.Lock()
	defer l.queue.mu.Unlock()
	l.queue.users--
	if !l.told {
		l.queue.promised--
	}
	l.queue = nil
}

// BindEQ binds an event queue of the same fabric to the domain (fi_domain_bind, and
// fi_av_bind for all of its address vectors). It gets the events of RegisterAsync and
// InsertAsync and, as an error event, the loss of the interface. It stays bound until the
// domain is closed.
func (d *Domain) BindEQ(q *EventQueue) error {
	if err := d.there(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return err
	}
	return d.events.link(q, d.fabric, "domain on "+d.label())
}

// Fabric returns the fabric of the domain. For a domain that was made by Open or Pipe it
// is one of its own.
func (d *Domain) Fabric() *Fabric { return d.fabric }

// bindTo makes the queue get an error event for the endpoint when the interface is lost.
func (q *EventQueue) bindTo(ep *endpoint, flags BindFlags) error {
	if flags != 0 {
		return errno.Refuse(ErrBadFlags, "xdpfab: bind of an event queue with flags %v: want none", flags)
	}
	return ep.events.link(q, ep.dom.fabric, fmt.Sprintf("endpoint %d", ep.number))
}

// NoAddress stands for an address that could not be inserted, or that is not in the
// address vector (FI_ADDR_NOTAVAIL).
const NoAddress = ^Address(0)

// RegisterAsync is Register without waiting for it (fi_mr_reg of a domain that is bound
// with FI_REG_MR). The event queue of the domain gets an EventMRComplete, with the region
// or with an error, and with opContext.
func (d *Domain) RegisterAsync(m *mr.Memory, o mr.Options, opContext any) error {
	if err := d.there(); err != nil {
		return err
	}
	return d.begin(1, func(q *EventQueue) {
		e := Event{Kind: EventMRComplete, Source: d, Context: opContext}
		e.Region, e.Err = d.Register(m, o)
		q.deliver(e)
	})
}

// InsertAsync is Insert for many addresses without waiting for them (fi_av_insert into a
// vector with FI_EVENT). The event queue of the domain gets an error event for each
// address that fails, with its index as Data, and then an EventAVComplete. All have
// opContext. ctx ends the search for routes and next hops, as the end of the domain does.
func (av *AddressVector) InsertAsync(ctx context.Context, addrs []string, opContext any) error {
	if err := av.there(); err != nil {
		return err
	}
	if err := errno.NoContext(ctx); err != nil {
		return err
	}
	if err := av.hold(); err != nil {
		return err
	}
	addrs = slices.Clone(addrs)
	err := av.dom.begin(len(addrs)+1, func(q *EventQueue) {
		e := Event{Kind: EventAVComplete, Source: av, Context: opContext}
		av.insertAll(ctx, addrs, q, e)
	})
	if err != nil {
		av.drop()
	}
	return err
}

// mostSearches is the most routes and next hops that an InsertAsync looks for at a time.
const mostSearches = 32

// insertAll inserts addresses and delivers the events, which are like e. It uses the
// vector no longer when it delivers the last: the program that reads it may close the
// vector.
func (av *AddressVector) insertAll(ctx context.Context, addrs []string, q *EventQueue, e Event) {
	ctx, stop := av.dom.during(ctx)
	defer stop()
	found, errs := make([]avEntry, len(addrs)), make([]error, len(addrs))
	var searches sync.WaitGroup
	room := make(chan struct{}, mostSearches)
	for i, addr := range addrs {
		room <- struct{}{}
		searches.Go(func() {
			found[i].addr, found[i].link, errs[i] = av.dom.resolve(ctx, addr)
			<-room
		})
	}
	searches.Wait()
	e.Addresses = av.add(ctx, found, errs)
	for i, err := range errs {
		if err != nil {
			q.deliver(Event{Kind: e.Kind, Source: e.Source, Context: e.Context, Data: uint64(i), Err: err})
		} else {
			e.Data++
		}
	}
	q.release(int(e.Data)) // the places for the failures of these
	av.drop()
	q.deliver(e)
}

// add inserts the entries without an error and returns the addresses. In a vector that is
// closed, every entry gets the error.
func (av *AddressVector) add(ctx context.Context, found []avEntry, errs []error) []Address {
	list := make([]Address, len(found))
	for i := range found {
		list[i] = NoAddress
		if errs[i] == nil {
			var a Address
			if a, errs[i] = av.put(ctx, found[i]); errs[i] == nil {
				list[i] = a
			}
		}
	}
	return list
}

// begin runs a call on a goroutine of its own. The call delivers n events, or gives their
// places back. The domain does not end before it.
func (d *Domain) begin(n int, call func(*EventQueue)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return err
	}
	q := d.events.queue
	if q == nil {
		return fmt.Errorf("xdpfab: domain on %s: %w is bound to tell of the end of the call: use BindEQ",
			d.label(), ErrNoEQ)
	}
	if err := q.promise(n); err != nil {
		return err
	}
	d.calls.Go(func() { call(q) })
	return nil
}

// during returns a context that ends with the domain too.
func (d *Domain) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-d.node.End.Done:
			cancel(d.node.End.Err())
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
