// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// newEQ makes an event queue and binds it to a domain.
func newEQ(t *testing.T, d *xdpfab.Domain, attr fi.EQAttr) *fi.EventQueue {
	t.Helper()
	q, err := d.Fabric().NewEventQueue(attr)
	if err == nil {
		err = d.BindEQ(q)
	}
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// event waits for the next event, an error event or not.
func event(t *testing.T, q *fi.EventQueue) fi.Event {
	t.Helper()
	if err := q.Wait(ctx(t)); err != nil {
		t.Fatal(err)
	}
	e, ok, err := q.Read()
	if errors.Is(err, fi.ErrErrorPending) {
		e, ok = q.ReadErr()
	}
	if !ok {
		t.Fatalf("no event after a wait: %v", err)
	}
	return e
}

// empty checks that a queue has no events.
func empty(t *testing.T, q *fi.EventQueue) {
	t.Helper()
	if e, ok, err := q.Read(); ok || err != nil {
		t.Errorf("an event too many: %+v, %v", e, err)
	}
}

// The program's own events come in order, and a look takes none.
func TestWriteEvents(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	q, err := f.client.Fabric().NewEventQueue(fi.EQAttr{Size: 3, Write: true})
	if err != nil {
		t.Fatal(err)
	}
	if want := (fi.EQAttr{Size: 4, Write: true}); q.Attr() != want {
		t.Errorf("the attributes are %+v, want %+v", q.Attr(), want)
	}
	bad := errors.New("tea time")
	for i, err := range []error{nil, bad, nil, nil} {
		if err := q.Write(fi.Event{Kind: 100, Data: uint64(i), Err: err}); err != nil {
			t.Fatal(err)
		}
	}
	if err := q.Write(fi.Event{}); err != fi.ErrAgain {
		t.Errorf("write to a full queue: %v, want ErrAgain", err)
	}
	if e, ok := q.ReadErr(); ok {
		t.Errorf("an error event before its turn: %+v", e)
	}
	for range 2 {
		if e, ok, err := q.Peek(); !ok || err != nil || e.Kind != 100 || e.Data != 0 {
			t.Errorf("peek: %+v, %v", e, err)
		}
	}
	for i := range 4 {
		if e := event(t, q); e.Data != uint64(i) || (e.Err == bad) != (i == 1) {
			t.Errorf("event %d: %+v", i, e)
		}
	}
	empty(t, q)
	if _, ok, err := q.Peek(); ok || err != nil {
		t.Errorf("peek into an empty queue: %t, %v", ok, err)
	}
	if err := newEQ(t, f.server, fi.EQAttr{}).Write(fi.Event{}); !errors.Is(err, fi.ErrNotImplemented) {
		t.Errorf("write to a queue that is made without: %v, want ErrNotImplemented", err)
	}
}

// Each wait object, for events.
func TestEventQueueWaits(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	for _, object := range []fi.WaitObject{fi.WaitUnspec, fi.WaitMutexCond, fi.WaitYield, fi.WaitFD} {
		q, err := f.client.Fabric().NewEventQueue(fi.EQAttr{Write: true, Wait: object})
		if err != nil {
			t.Fatal(err)
		}
		soon, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := q.Wait(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: with nothing to come: %v, want the context's error", object, err)
		}
		errs := make(chan error, 4)
		for range cap(errs) {
			go func() { errs <- q.Wait(ctx(t)) }()
		}
		if err := q.Write(fi.Event{}); err != nil {
			t.Fatal(err)
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Errorf("%v: %v", object, err)
			}
		}
		event(t, q)
		go func() { errs <- q.Wait(ctx(t)) }()
		if err := errors.Join(q.Close(), q.Close()); err != nil {
			t.Error(err)
		}
		if err := <-errs; !errors.Is(err, fi.ErrClosed) {
			t.Errorf("%v: a wait for a closed queue: %v, want ErrClosed", object, err)
		}
	}
	q, _ := f.client.Fabric().NewEventQueue(fi.EQAttr{Wait: fi.WaitNone})
	_, noFD := q.FD()
	_, unknown := f.client.Fabric().NewEventQueue(fi.EQAttr{Wait: 99})
	for what, err := range map[string]error{"wait": q.Wait(ctx(t)), "try": q.TryWait(), "descriptor": noFD, "unknown object": unknown} {
		if !errors.Is(err, fi.ErrNotImplemented) {
			t.Errorf("%s: %v, want ErrNotImplemented", what, err)
		}
	}
	_ = q.Close()
}

// The descriptor of an event queue is readable once it was armed and an event came.
func TestEventQueueFD(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	q, err := f.client.Fabric().NewEventQueue(fi.EQAttr{Write: true, Wait: fi.WaitFD})
	if err != nil {
		t.Fatal(err)
	}
	fd, _ := q.FD()
	for range 100 {
		if err := q.TryWait(); err != nil || readable(t, fd, 0) {
			t.Fatalf("armed: %v, or readable", err)
		}
		go func() { _ = q.Write(fi.Event{}) }()
		if !readable(t, fd, testnet.Patience) {
			t.Fatal("an event is lost on the way to the descriptor")
		}
		if err := q.TryWait(); err != fi.ErrAgain {
			t.Errorf("armed with an event: %v, want ErrAgain", err)
		}
		event(t, q)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

// An event queue is of one fabric, and stays open as long as anything is bound.
func TestEventQueueBinding(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	fabric := f.client.Fabric()
	q := newEQ(t, f.client, fi.EQAttr{Size: 2})
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, got, want error) {
		t.Helper()
		if !errors.Is(got, want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	check("a domain with one", f.client.BindEQ(q), fi.ErrBusy)
	check("another fabric's", f.server.BindEQ(q), fi.ErrForeign)
	check("none", f.server.BindEQ(nil), fi.ErrNoEQ)
	check("flags", ep.Bind(q, fi.BindRead), fi.ErrBadFlags)
	check("an endpoint", ep.Bind(q, 0), nil)
	check("an endpoint with one", ep.Bind(q, 0), fi.ErrBusy)
	full, _ := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	check("a queue without room", full.Bind(q, 0), fi.ErrAgain)
	check("bound to both", q.Close(), fi.ErrBusy)
	check("the endpoint ends", ep.Close(), nil)
	check("room again", full.Bind(q, 0), nil)
	check("bound to the domain", q.Close(), fi.ErrBusy)
	check("the domain ends", f.client.CloseAll(), nil)
	empty(t, q)
	check("fabric with a queue", fabric.Close(), fi.ErrBusy)
	check("bound to nothing", errors.Join(q.Close(), fabric.Close()), nil)
	check("a closed domain", f.client.BindEQ(q), fi.ErrClosed)
	other := newEQ(t, f.server, fi.EQAttr{Write: true})
	check("bound to the other domain", other.Close(), fi.ErrBusy)
	check("the other domain ends", errors.Join(f.server.CloseAll(), other.Close()), nil)
	check("a closed queue", other.Write(fi.Event{}), fi.ErrClosed)
}
