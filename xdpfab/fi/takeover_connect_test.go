// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// caller is a domain that has connected endpoints, with an event queue for all.
type caller struct {
	t *testing.T
	d *xdpfab.Domain
	q *fi.EventQueue
	p *fi.PassiveEndpoint
}

// newCaller makes the domain listen at passive endpoint 9.
func newCaller(t *testing.T, d *xdpfab.Domain) *caller {
	t.Helper()
	c := &caller{t: t, d: d}
	var err error
	if c.q, err = d.Fabric().NewEventQueue(fi.EQAttr{}); err == nil {
		err = d.BindEQ(c.q)
	}
	if err == nil {
		c.p, err = d.NewPassiveEndpoint(fi.PassiveAttr{Number: 9})
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.p.Bind(c.q), c.p.Listen()); err != nil {
		t.Fatal(err)
	}
	return c
}

// next waits for the next event, which has to be of a kind.
func (c *caller) next(kind fi.EventKind) fi.Event {
	c.t.Helper()
	if err := c.q.Wait(c.t.Context()); err != nil {
		c.t.Fatal(err)
	}
	e, ok, err := c.q.Read()
	if errors.Is(err, fi.ErrErrorPending) {
		e, ok = c.q.ReadErr()
	}
	if !ok || e.Kind != kind || e.Err != nil {
		c.t.Fatalf("event %+v, %v: want %v", e, err, kind)
	}
	return e
}

// endpoint makes an endpoint to be connected, with a completion queue.
func (c *caller) endpoint(a fi.EndpointAttr) (*fi.Endpoint, *fi.CompletionQueue) {
	c.t.Helper()
	a.Number, a.Type = fi.AnyNumber, fi.EndpointMsg
	ep, err := c.d.NewEndpoint(a)
	if err != nil {
		c.t.Fatal(err)
	}
	q, err := c.d.NewCompletionQueue(fi.CQAttr{})
	if err == nil {
		err = ep.Bind(q, 0)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return ep, q
}

// calls has an endpoint ask for a connection with another domain.
func (c *caller) calls(other *caller) (*fi.Endpoint, *fi.CompletionQueue) {
	c.t.Helper()
	ep, q := c.endpoint(fi.EndpointAttr{})
	if err := ep.Connect(c.t.Context(), other.p.Name(), nil); err != nil {
		c.t.Fatal(err)
	}
	return ep, q
}

// accepts has an endpoint accept a request.
func (c *caller) accepts(r *fi.ConnRequest) (*fi.Endpoint, *fi.CompletionQueue) {
	c.t.Helper()
	i := r.Info()
	ep, q := c.endpoint(i.EndpointAttr())
	if err := ep.Accept(c.t.Context(), nil); err != nil {
		c.t.Fatal(err)
	}
	return ep, q
}

// connected adds 1 to a word of the region of the endpoint's peer, again and again.
func (l *load) connected(ep *fi.Endpoint, q *fi.CompletionQueue, r *mr.Region, word uint64) {
	l.fetches(ep, q, fi.Msg{Key: r.Key(), Offset: 8 * word})
}

// fetches adds 1 to the word that a message names, again and again.
func (l *load) fetches(ep *fi.Endpoint, q *fi.CompletionQueue, m fi.Msg) {
	m.Buf, m.Datatype, m.Op = binary.LittleEndian.AppendUint64(nil, 1), atomic.Uint64, atomic.Sum
	l.loop(fmt.Sprintf("add by endpoint %d", ep.Number()), func(i uint64) error {
		m.Result = make([]byte, 8)
		if err := ep.FetchAtomic(&m, 0); err != nil {
			return err
		}
		if err := q.Wait(l.t.Context(), 1); err != nil {
			return err
		}
		if _, err := q.Read(make([]fi.Completion, 1)); err != nil {
			c, _ := q.ReadErr()
			return fmt.Errorf("%w: %w", err, c.Err)
		}
		if got := binary.LittleEndian.Uint64(m.Result); got != i {
			return fmt.Errorf("found %d, want %d", got, i)
		}
		return nil
	})
}

// Connections of a guest go on at the next process, in both directions and under load,
// and so do requests: one that the guest has heard of and not answered, and one that it
// has made and that is not answered. Passive endpoints listen there.
func TestTakeoverConnected(t *testing.T) {
	s, b := newSuccession(t)
	g := guestBy(t, s.connect, fi.DomainAttr{}, nil)
	own, err := g.NewRegion("own", 4096)
	theirs, err2 := b.NewRegion("theirs", 4096)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	here, there := newCaller(t, g), newCaller(t, b)
	l := &load{t: t}

	farCaller, farQueue := there.calls(here)
	request := here.next(fi.EventConnReq).Request
	s.next()
	callee, queue := here.accepts(request)
	here.next(fi.EventConnected)
	there.next(fi.EventConnected)
	l.connected(farCaller, farQueue, own, 0)
	l.connected(callee, queue, theirs, 0)
	l.goOn()

	caller, nearQueue := here.calls(there)
	request = there.next(fi.EventConnReq).Request
	s.next()
	l.goOn()
	farCallee, otherQueue := there.accepts(request)
	here.next(fi.EventConnected)
	there.next(fi.EventConnected)
	l.connected(caller, nearQueue, theirs, 1)
	l.connected(farCallee, otherQueue, own, 1)
	for range 3 {
		l.goOn()
		s.next()
	}
	l.goOn()

	third, _ := there.calls(here) // which still listens
	fourth, _ := here.accepts(here.next(fi.EventConnReq).Request)
	here.next(fi.EventConnected)
	there.next(fi.EventConnected)
	l.stop.Store(true)
	for _, r := range l.runs {
		<-r.done
	}
	if err := third.Disconnect(); err != nil {
		t.Error(err)
	}
	if e := here.next(fi.EventShutdown); e.Source != fourth {
		t.Errorf("the end of %v, want that of endpoint %d", e.Source, fourth.Number())
	}
	for _, q := range []*fi.EventQueue{here.q, there.q} {
		if e, ok, err := q.Read(); ok || err != nil {
			t.Errorf("an event too many: %+v, %v", e, err)
		}
	}
}
