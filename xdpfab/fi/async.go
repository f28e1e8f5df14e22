// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/mr"
)

// NoAddress stands for an address that could not be inserted, or that is not in the
// address vector (FI_ADDR_NOTAVAIL).
const NoAddress = ^Address(0)

// RegisterAsync is Register without waiting for it (fi_mr_reg of a domain that is bound
// with FI_REG_MR). The event queue of the domain gets an EventMRComplete, with the region
// or with an error, and with opContext.
func (d *Domain) RegisterAsync(m *mr.Memory, o mr.Options, opContext any) error {
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
			d.node.Dev.Info().Name, ErrNoEQ)
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
