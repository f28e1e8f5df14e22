// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// switchboard is a bench whose server listens.
type switchboard struct {
	*bench
	pep    *fi.PassiveEndpoint
	near   *fi.EventQueue // the client's
	far    *fi.EventQueue // the server's
	nearCQ *fi.CompletionQueue
	farCQ  *fi.CompletionQueue
}

func newSwitchboard(b *bench, attr fi.PassiveAttr) *switchboard {
	b.Helper()
	s := &switchboard{bench: b, near: newEQ(b.T, b.client, fi.EQAttr{})}
	var err1, err2, err3, err4 error
	s.far, err1 = b.server.Fabric().NewEventQueue(fi.EQAttr{})
	s.nearCQ, err2 = b.client.NewCompletionQueue(fi.CQAttr{})
	s.farCQ, err3 = b.server.NewCompletionQueue(fi.CQAttr{})
	s.pep, err4 = b.server.NewPassiveEndpoint(attr)
	b.ok(errors.Join(err1, err2, err3, err4, s.pep.Bind(s.far), s.pep.Listen()))
	return s
}

// caller is an endpoint of the client that can be connected.
func (s *switchboard) caller() *fi.Endpoint {
	s.Helper()
	ep, err := s.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Type: fi.EndpointMsg, Context: "caller"})
	s.ok(err)
	s.ok(ep.Bind(s.nearCQ, 0))
	return ep
}

// callee is the endpoint of the server for a request.
func (s *switchboard) callee(r *fi.ConnRequest) *fi.Endpoint {
	s.Helper()
	i := r.Info()
	ep, err := s.server.NewEndpoint(i.EndpointAttr())
	s.ok(err)
	s.ok(errors.Join(ep.Bind(s.farCQ, 0), ep.Bind(s.far, 0)))
	return ep
}

// next waits for an event of a kind about an object. While it waits for the server's, a
// client with manual progress moves on.
func (s *switchboard) next(q *fi.EventQueue, kind fi.EventKind, source any) fi.Event {
	s.Helper()
	if q == s.far {
		testnet.Eventually(s.T, kind.String(), func() bool {
			s.client.Progress()
			_, ok, err := q.Peek()
			return ok || err != nil
		})
	}
	e := event(s.T, q)
	if e.Kind != kind || source != nil && e.Source != source {
		s.Fatalf("event %+v: want %v about %T", e, kind, source)
	}
	return e
}

// connect joins a caller and a callee.
func (s *switchboard) connect() (caller, callee *fi.Endpoint) {
	s.Helper()
	caller = s.caller()
	s.ok(caller.Connect(ctx(s.T), s.pep.Name(), []byte("hello")))
	e := s.next(s.far, fi.EventConnReq, s.pep)
	if string(e.Param) != "hello" || e.Request.Peer() != caller.Name() {
		s.Fatalf("request of %s with %q", e.Request.Peer(), e.Param)
	}
	callee = s.callee(e.Request)
	s.ok(callee.Accept(ctx(s.T), []byte("welcome")))
	if e := s.next(s.near, fi.EventConnected, caller); string(e.Param) != "welcome" || e.Err != nil || e.Context != "caller" {
		s.Fatalf("connected: %+v", e)
	}
	if e := s.next(s.far, fi.EventConnected, callee); len(e.Param) != 0 || e.Err != nil {
		s.Fatalf("connected: %+v", e)
	}
	return caller, callee
}

// Two endpoints are connected, post to each other whatever the address says, and learn
// of the end.
func TestConnection(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		s := newSwitchboard(b, fi.PassiveAttr{Number: 9})
		caller, callee := s.connect()
		for _, x := range [][2]*fi.Endpoint{{caller, callee}, {callee, caller}} {
			if name, err := x[0].PeerName(); name != x[1].Name() || err != nil {
				t.Errorf("peer %q, %v, want %q", name, err, x[1].Name())
			}
		}
		if i := caller.Info(); i.Endpoint.Type != fi.EndpointMsg {
			t.Errorf("type %v", i.Endpoint.Type)
		}
		for i := range 10 {
			m := b.fetchAdd(3)
			m.Dest = 77 // which no vector has
			b.ok(caller.FetchAtomic(m, 0))
			if c := b.take(s.nearCQ, 1)[0]; c.Err != nil || before(m) != uint64(i) {
				t.Fatalf("operation %d: %d, %+v", i, before(m), c)
			}
		}
		// The callee posts to the caller, which has no such region.
		b.ok(callee.Atomic(b.add(0), 0))
		b.ok(driving(t, s.farCQ, b.client))
		if c := b.take(s.farCQ, 1)[0]; !errors.Is(c.Err, fi.ErrNoKey) {
			t.Errorf("operation of the callee: %+v, want ErrNoKey", c)
		}
		b.ok(callee.Disconnect())
		s.next(s.near, fi.EventShutdown, caller)
		empty(t, s.near)
		empty(t, s.far)
		for what, ep := range map[string]*fi.Endpoint{"caller": caller, "callee": callee} {
			if err := ep.Atomic(b.add(3), 0); !errors.Is(err, fi.ErrNotConnected) {
				t.Errorf("post by the %s after the end: %v", what, err)
			}
			if _, err := ep.PeerName(); !errors.Is(err, fi.ErrNotConnected) {
				t.Errorf("peer of the %s after the end: %v", what, err)
			}
			b.ok(ep.Close())
		}
		b.ok(s.pep.Close())
	})
}

// driving waits for a completion at the server, while a client with manual progress is
// moved on.
func driving(t *testing.T, cq *fi.CompletionQueue, client *xdpfab.Domain) error {
	done := make(chan error, 1)
	go func() { done <- cq.Wait(ctx(t), 1) }()
	for {
		select {
		case err := <-done:
			return err
		default:
			client.Progress()
		}
	}
}

// A request that is rejected, that meets nobody, or that nobody answers, ends with an
// event that says so.
func TestConnectionRefused(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		s := newSwitchboard(b, fi.PassiveAttr{Number: fi.AnyNumber})
		ep := s.caller()
		b.ok(ep.Connect(ctx(t), s.pep.Name(), nil))
		r := s.next(s.far, fi.EventConnReq, s.pep).Request
		late := s.callee(r)
		b.ok(s.pep.Reject(r, []byte("busy")))
		e := s.next(s.near, fi.EventConnected, ep)
		if !errors.Is(e.Err, fi.ErrRefused) || string(e.Param) != "busy" {
			t.Errorf("rejected: %+v", e)
		}
		if err := errors.Join(s.pep.Reject(r, nil)); !errors.Is(err, fi.ErrBusy) {
			t.Errorf("rejected twice: %v", err)
		}
		if err := late.Accept(ctx(t), nil); !errors.Is(err, fi.ErrBusy) {
			t.Errorf("accepted after it was rejected: %v", err)
		}
		if err := ep.Connect(ctx(t), s.pep.Name(), nil); !errors.Is(err, fi.ErrConnected) {
			t.Errorf("connect for the second time: %v", err)
		}
		for what, addr := range map[string]string{"an endpoint that does not listen": b.server.Name(0), "no endpoint": b.server.Name(999)} {
			x := s.caller()
			b.ok(x.Connect(ctx(t), addr, nil))
			if e := s.next(s.near, fi.EventConnected, x); !errors.Is(e.Err, fi.ErrRefused) {
				t.Errorf("%s: %+v", what, e)
			}
			if err := x.Atomic(b.add(0), 0); !errors.Is(err, fi.ErrNotConnected) {
				t.Errorf("%s: post: %v", what, err)
			}
		}
		b.ok(s.pep.Close())
		x := s.caller()
		b.ok(x.Connect(ctx(t), s.pep.Name(), nil))
		if e := s.next(s.near, fi.EventConnected, x); !errors.Is(e.Err, fi.ErrRefused) {
			t.Errorf("a closed one: %+v", e)
		}
		b.ok(errors.Join(b.client.CloseAll(), b.server.CloseAll(), s.far.Close(), s.near.Close()))
	})
}

// A request that nobody answers ends with the give-up time, and one that is not repeated
// any more gives its place to others, and cannot be accepted.
func TestConnectionUnanswered(t *testing.T) {
	ours, a := fi.NewClock(fi.DomainAttr{})
	theirs, b := fi.NewClock(fi.DomainAttr{})
	x := setUpBoth(t, a, b, 64)
	forward := func(by time.Duration) { // for both in step: requests come when they were sent
		for ; by > 0; by -= time.Second {
			ours.Forward(time.Second, x.client.Domain)
			theirs.Forward(time.Second, x.server.Domain)
		}
	}
	s := newSwitchboard(&bench{t, x.client, x.server, x.av, x.dest, 1}, fi.PassiveAttr{Number: 9, Backlog: 1})
	ep, second := s.caller(), s.caller()
	s.ok(ep.Connect(ctx(t), s.pep.Name(), nil))
	r := s.next(s.far, fi.EventConnReq, s.pep).Request
	late := s.callee(r)
	s.ok(second.Connect(ctx(t), s.pep.Name(), nil)) // there is no room for it
	forward(2 * time.Minute)
	for range 2 {
		if e := s.next(s.near, fi.EventConnected, nil); !errors.Is(e.Err, fi.ErrUnanswered) {
			t.Errorf("not answered: %+v", e)
		}
	}
	empty(t, s.far)
	forward(2 * time.Minute) // as long as nobody repeats it
	third := s.caller()
	s.ok(third.Connect(ctx(t), s.pep.Name(), nil))
	if e := s.next(s.far, fi.EventConnReq, s.pep); e.Request.Peer() != third.Name() {
		t.Errorf("request of %s, want %s", e.Request.Peer(), third.Name())
	}
	if err := late.Accept(ctx(t), nil); !errors.Is(err, fi.ErrPeerSilent) {
		t.Errorf("accepted too late: %v", err)
	}
	s.ok(s.client.SetFaults(fi.Faults{Loss: 1}))
	fourth := s.caller()
	s.ok(fourth.Connect(ctx(t), s.pep.Name(), nil))
	forward(2 * time.Minute)
	for want := []*fi.Endpoint{third, fourth}; len(want) > 0; want = want[1:] {
		e := event(t, s.near)
		if cause := map[any]error{third: fi.ErrUnanswered, fourth: fi.ErrPeerSilent}[e.Source]; !errors.Is(e.Err, cause) {
			t.Errorf("cut off: %+v, want %v", e, cause)
		}
	}
}

// Messages go from one side of a connection to the other, whatever their addresses say.
func TestConnectionMessages(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		s := newSwitchboard(b, fi.PassiveAttr{Number: 9})
		newEnd := func(d *xdpfab.Domain, cq *fi.CompletionQueue, a fi.EndpointAttr, more ...fi.Bindable) *fi.Endpoint {
			ep, err := d.NewEndpoint(a)
			b.ok(errors.Join(err, ep.Bind(cq, fi.BindTransmit|fi.BindRecv)))
			for _, x := range more {
				b.ok(ep.Bind(x, 0))
			}
			return ep
		}
		caller := newEnd(b.client, s.nearCQ, fi.EndpointAttr{Number: fi.AnyNumber, Type: fi.EndpointMsg})
		b.ok(caller.Connect(ctx(t), s.pep.Name(), nil))
		i := s.next(s.far, fi.EventConnReq, s.pep).Request.Info()
		callee := newEnd(b.server, s.farCQ, i.EndpointAttr(), s.far)
		b.ok(callee.Accept(ctx(t), nil))
		s.next(s.near, fi.EventConnected, caller)
		s.next(s.far, fi.EventConnected, callee)
		buf := make([]byte, 8)
		b.ok(callee.Receive(&fi.Receive{Buf: buf, Source: 33}, fi.FlagDirected))
		b.ok(caller.Send(&fi.Message{Buf: []byte("question"), Dest: 77}, 0))
		b.ok(driving(t, s.farCQ, b.client))
		if c := success(t, s.farCQ); string(buf) != "question" || c.Bytes != 8 {
			t.Errorf("%q, %+v", buf, c)
		}
		success(t, s.nearCQ)
		b.ok(caller.Receive(&fi.Receive{Buf: buf}, 0))
		b.ok(callee.Send(&fi.Message{Buf: []byte("answer!!")}, 0))
		if c := success(t, s.nearCQ); string(buf) != "answer!!" || c.Bytes != 8 {
			t.Errorf("%q, %+v", buf, c)
		}
	})
}

// A receive from one source needs an address vector to tell sources by.
func TestDirectedWithoutVector(t *testing.T) {
	x := setUp(t, fi.DomainAttr{}, 64)
	cq, err1 := x.server.NewCompletionQueue(fi.CQAttr{})
	ep, err2 := x.server.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	if err := errors.Join(err1, err2, ep.Bind(cq, fi.BindRecv), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	if err := ep.Receive(&fi.Receive{Buf: make([]byte, 8)}, fi.FlagDirected); !errors.Is(err, fi.ErrNoAV) {
		t.Errorf("%v, want ErrNoAV", err)
	}
}

// Under loss, a request is told of once, and its connection comes about.
func TestConnectionUnderLoss(t *testing.T) {
	x := setUp(t, fi.DomainAttr{}, 64)
	s := newSwitchboard(&bench{t, x.client, x.server, x.av, x.dest, 1}, fi.PassiveAttr{Number: 9})
	lossy := func(share float64) error {
		return errors.Join(x.client.SetFaults(fi.Faults{Loss: share}), x.server.SetFaults(fi.Faults{Loss: share}))
	}
	for range 5 {
		s.ok(lossy(0.2))
		caller, callee := s.connect()
		s.ok(caller.Atomic(s.add(0), 0))
		if c := s.take(s.nearCQ, 1)[0]; c.Err != nil {
			t.Fatal(c.Err)
		}
		s.ok(lossy(0)) // a farewell that is lost is noticed by a probe, which takes longer
		s.ok(callee.Close())
		s.next(s.near, fi.EventShutdown, caller)
		s.ok(caller.Close())
	}
	empty(t, s.far)
}

// The death of a peer, and its next life, end a connection.
func TestConnectionPeerDies(t *testing.T) {
	for _, again := range []bool{false, true} {
		clock, a := fi.NewClock(fi.DomainAttr{})
		x := setUpBoth(t, a, a, 64)
		s := newSwitchboard(&bench{t, x.client, x.server, x.av, x.dest, 1}, fi.PassiveAttr{Number: 9})
		caller, _ := s.connect()
		s.ok(x.server.SetFaults(fi.Faults{Loss: 1}))
		if again {
			next, err := x.server.Again(true)
			s.ok(err)
			t.Cleanup(func() { _ = next.CloseAll() })
		}
		testnet.Eventually(t, "the end", func() bool {
			clock.Forward(5*time.Second, x.client.Domain)
			_, ok, err := s.near.Peek()
			return ok || err != nil
		})
		s.next(s.near, fi.EventShutdown, caller)
		if err := caller.Atomic(s.add(0), 0); !errors.Is(err, fi.ErrNotConnected) {
			t.Errorf("post after the peer's death: %v", err)
		}
	}
}

// A connected endpoint takes the sessions of its peer alone.
func TestConnectionIsPrivate(t *testing.T) {
	x := setUp(t, fi.DomainAttr{}, 64)
	s := newSwitchboard(&bench{t, x.client, x.server, x.av, x.dest, 1}, fi.PassiveAttr{Number: 9})
	_, callee := s.connect()
	if _, err := x.client.Dial(ctx(t), callee.Name()); !errors.Is(err, fi.ErrRefused) {
		t.Errorf("dial of a connected endpoint: %v", err)
	}
	if _, err := x.client.Dial(ctx(t), s.pep.Name()); !errors.Is(err, fi.ErrRefused) {
		t.Errorf("dial of a passive endpoint: %v", err)
	}
}

// Both sides need the key of the passive endpoint.
func TestConnectionKeys(t *testing.T) {
	key := fi.AuthKey("sesame")
	x := setUp(t, fi.DomainAttr{}, 64)
	s := newSwitchboard(&bench{t, x.client, x.server, x.av, x.dest, 1}, fi.PassiveAttr{Number: 9, AuthKey: key})
	for _, k := range []fi.AuthKey{nil, fi.AuthKey("simsim"), key} {
		ep, err := s.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Type: fi.EndpointMsg, AuthKey: k})
		s.ok(errors.Join(err, ep.Bind(s.nearCQ, 0), ep.Connect(ctx(t), s.pep.Name(), make([]byte, fi.CMDataSize))))
		if string(k) != string(key) {
			if e := s.next(s.near, fi.EventConnected, ep); !errors.Is(e.Err, fi.ErrAuthKey) {
				t.Errorf("key %q: %+v", k, e)
			}
			continue
		}
		s.ok(s.callee(s.next(s.far, fi.EventConnReq, s.pep).Request).Accept(ctx(t), make([]byte, fi.CMDataSize)))
		if e := s.next(s.near, fi.EventConnected, ep); e.Err != nil || len(e.Param) != fi.CMDataSize {
			t.Errorf("the right key: %+v", e)
		}
	}
}

// What cannot be is refused.
func TestConnectionRefusals(t *testing.T) {
	x := setUp(t, fi.DomainAttr{}, 64)
	s := newSwitchboard(&bench{t, x.client, x.server, x.av, x.dest, 1}, fi.PassiveAttr{Number: 9})
	plain, err := x.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	s.ok(err)
	caller, idle := s.caller(), s.caller()
	s.ok(caller.Connect(ctx(t), s.pep.Name(), nil))
	r := s.next(s.far, fi.EventConnReq, s.pep).Request
	deaf, err := x.server.NewPassiveEndpoint(fi.PassiveAttr{Number: fi.AnyNumber})
	s.ok(err)
	lonely, err := x.server.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Type: fi.EndpointMsg})
	s.ok(err)
	newEndpoint := func(d *xdpfab.Domain, a fi.EndpointAttr) error {
		_, err := d.NewEndpoint(a)
		return err
	}
	newPassive := func(a fi.PassiveAttr) error {
		_, err := x.server.NewPassiveEndpoint(a)
		return err
	}
	for what, c := range map[string]struct{ got, want error }{
		"connect of a datagram endpoint": {plain.Connect(ctx(t), s.pep.Name(), nil), fi.ErrNotImplemented},
		"disconnect of one":              {plain.Disconnect(), fi.ErrNotImplemented},
		"too much data":                  {idle.Connect(ctx(t), s.pep.Name(), make([]byte, 57)), fi.ErrCMData},
		"too much data for a rejection":  {s.pep.Reject(r, make([]byte, 57)), fi.ErrCMData},
		"disconnect before connect":      {idle.Disconnect(), fi.ErrNotConnected},
		"accept without a request":       {idle.Accept(ctx(t), nil), fi.ErrNotImplemented},
		"no event queue":                 {lonely.Connect(ctx(t), x.client.Name(1), nil), fi.ErrNoEQ},
		"listen without a queue":         {deaf.Listen(), fi.ErrNoEQ},
		"another fabric's queue":         {deaf.Bind(s.near), fi.ErrForeign},
		"no queue":                       {deaf.Bind(nil), fi.ErrNoEQ},
		"a second queue":                 {s.pep.Bind(s.far), fi.ErrBusy},
		"another's request":              {deaf.Reject(r, nil), fi.ErrForeign},
		"an address vector":              {idle.Bind(x.av, 0), fi.ErrNotImplemented},
		"type dgram":                     {newEndpoint(x.server, fi.EndpointAttr{Type: endpointDgram}), fi.ErrNotImplemented},
		"that nobody can reach":          {newEndpoint(x.server, fi.EndpointAttr{Type: fi.EndpointMsg, InitiateOnly: true}), fi.ErrNotImplemented},
		"a datagram one for a request":   {newEndpoint(x.server, fi.EndpointAttr{Request: r}), fi.ErrNotImplemented},
		"another domain's request":       {newEndpoint(x.client, fi.EndpointAttr{Type: fi.EndpointMsg, Request: r, Number: fi.AnyNumber}), fi.ErrForeign},
		"a number that is taken":         {newEndpoint(x.server, fi.EndpointAttr{Number: 9}), fi.ErrBusy},
		"a passive one of that number":   {newPassive(fi.PassiveAttr{Number: 9}), fi.ErrBusy},
		"a backlog too large":            {newPassive(fi.PassiveAttr{Number: 10, Backlog: 1 << 20}), fi.ErrCount},
		"close of a bound queue":         {s.far.Close(), fi.ErrBusy},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	s.ok(errors.Join(deaf.Close(), deaf.Close()))
	for _, err := range []error{deaf.Bind(s.far), deaf.Listen()} {
		if !errors.Is(err, fi.ErrClosed) {
			t.Errorf("a closed one: %v", err)
		}
	}
}
