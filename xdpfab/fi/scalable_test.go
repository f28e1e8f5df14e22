// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// scalable makes a scalable endpoint with enabled receive contexts, and the counters of
// what peers do by each.
func scalable(t *testing.T, d *xdpfab.Domain, contexts int) (*fi.ScalableEndpoint, []*fi.Counter) {
	t.Helper()
	s, err := d.NewScalableEndpoint(fi.ScalableAttr{Number: fi.AnyNumber, RXContexts: contexts})
	if err != nil {
		t.Fatal(err)
	}
	c := counters(t, d, contexts)
	for i := range contexts {
		rx, err := s.ReceiveContext(i)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(rx.Bind(c[i], fi.BindRemoteRead|fi.BindRemoteWrite), rx.Enable()); err != nil {
			t.Fatal(err)
		}
	}
	return s, c
}

// Transmit contexts are spread over the queues, post at the same time, and each has its
// order; peers count what comes by each receive context.
func TestScalableEndpoint(t *testing.T) {
	testScalable := func(b *bench, queues int) {
		const contexts, each = 3, 200
		theirs, counted := scalable(b.T, b.server, contexts)
		av, err := b.client.NewAddressVector()
		b.ok(err)
		dest, err := av.Insert(ctx(b.T), theirs.Name())
		b.ok(err)
		mine, err := b.client.NewScalableEndpoint(fi.ScalableAttr{Number: 20, TXContexts: contexts})
		b.ok(err)
		b.ok(mine.Bind(av))
		var all sync.WaitGroup
		var used []int
		for i := range contexts {
			tx, err := mine.TransmitContext(i, fi.EndpointAttr{Size: 64})
			b.ok(err)
			cq, err := b.client.NewCompletionQueue(fi.CQAttr{})
			b.ok(err)
			b.ok(errors.Join(tx.Bind(cq, 0), tx.Enable()))
			if tx.Name() != mine.Name() {
				b.Errorf("context %d is called %s, want %s", i, tx.Name(), mine.Name())
			}
			used = append(used, tx.Queue())
			at, err := fi.RXAddress(dest, i)
			b.ok(err)
			all.Go(func() {
				for n := range each {
					m := b.fetchAdd(i)
					m.Dest = at
					if err := tx.FetchAtomic(m, 0); err != nil {
						b.Error(err)
						return
					}
					for done := (fi.Completion{}); done.Endpoint == nil; {
						if err := cq.Wait(ctx(b.T), 1); err != nil {
							b.Error(err)
							return
						}
						var c [1]fi.Completion
						if _, err := cq.Read(c[:]); err != nil {
							e, _ := cq.ReadErr()
							b.Error(e.Err)
							return
						}
						done = c[0]
						if done.Endpoint != nil && (done.Source != at || before(m) != uint64(n)) {
							b.Errorf("from %#x, found %d: want %#x and %d", done.Source, before(m), at, n)
						}
					}
				}
			})
		}
		all.Wait()
		slices.Sort(used)
		if used = slices.Compact(used); len(used) != queues {
			b.Errorf("queues %v in use, want %d", used, queues)
		}
		for i, c := range counted {
			if n := c.Read(); n != each {
				b.Errorf("receive context %d has counted %d, want %d", i, n, each)
			}
		}
	}
	t.Run("pipe", func(t *testing.T) {
		f := setUp(t, fi.DomainAttr{}, 64)
		testScalable(&bench{t, f.client, f.server, f.av, f.dest, 1}, 1)
	})
	for _, queues := range []int{1, 3} {
		t.Run(fmt.Sprintf("veth with %d queues", queues), func(t *testing.T) {
			a, b, _ := onVeth(t, queues, fi.DomainAttr{}, fi.DomainAttr{})
			testScalable(benchOf(t, a, b), queues)
		})
	}
}

// Operations of one transmit context apply in the order posted, by its own sessions, and
// its place can be taken by another one after it was closed.
func TestScalableOrder(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		theirs, counted := scalable(b.T, b.server, 2)
		dest, err := b.av.Insert(ctx(b.T), theirs.Name())
		b.ok(err)
		second, err := fi.RXAddress(dest, 1)
		b.ok(err)
		mine, err := b.client.NewScalableEndpoint(fi.ScalableAttr{Number: 20})
		b.ok(err)
		b.ok(mine.Bind(b.av))
		for round := range 2 {
			tx, err := mine.TransmitContext(0, fi.EndpointAttr{})
			b.ok(err)
			cq, err := b.client.NewCompletionQueue(fi.CQAttr{})
			b.ok(err)
			b.ok(errors.Join(tx.Bind(cq, 0), tx.Enable()))
			var ops []*fi.Msg
			for range 100 {
				m := b.fetchAdd(0)
				m.Dest = second
				b.ok(tx.FetchAtomic(m, 0))
				ops = append(ops, m)
			}
			b.take(cq, len(ops))
			for i, m := range ops {
				if got := before(m); got != uint64(100*round+i) {
					b.Fatalf("operation %d of round %d found %d", i, round, got)
				}
			}
			if err := mine.Close(); !errors.Is(err, fi.ErrBusy) {
				b.Errorf("close with an open context: %v", err)
			}
			b.ok(tx.Close())
		}
		b.counts("second", counted[1], 200, 0)
		b.counts("first", counted[0], 0, 0)
		b.ok(errors.Join(mine.Close(), mine.Close()))
		again, err := b.client.NewEndpoint(fi.EndpointAttr{Number: 20})
		b.ok(err)
		b.ok(again.Close())
	})
}

// With the address the names of its receive contexts are removed, and what waits for them
// fails.
func TestScalableRemove(t *testing.T) {
	fi.NotOverSockets(t, "it names peers by Ethernet addresses")
	f := setUp(t, fi.DomainAttr{}, 16)
	b := &bench{t, f.client, f.server, f.av, f.dest, 1}
	theirs, _ := scalable(t, f.server, 2)
	dest, err := f.av.Insert(ctx(t), theirs.Name())
	b.ok(err)
	second, err := fi.RXAddress(dest, 1)
	b.ok(err)
	ep, cq := b.endpoint(fi.EndpointAttr{})
	m := b.add(0)
	m.Dest = second
	b.ok(ep.Atomic(m, 0))
	b.take(cq, 1)
	if name, err := f.av.Lookup(second); err != nil || name != fmt.Sprintf("%s/%d", f.server.Interface().MAC, theirs.Attr().Number+1) {
		t.Errorf("%s, %v", name, err)
	}
	if err := f.av.Remove(second); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("removal of a context alone: %v", err)
	}
	b.ok(f.av.Remove(dest))
	if err := ep.Atomic(m, 0); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("after the removal: %v", err)
	}
	beyond, err := fi.RXAddress(f.dest, 5) // an endpoint that the server does not have
	b.ok(err)
	m.Dest = beyond
	b.ok(ep.Atomic(m, 0))
	if done := b.take(cq, 1); !errors.Is(done[0].Err, fi.ErrRefused) || done[0].Source != beyond {
		t.Errorf("%v from %#x", done[0].Err, done[0].Source)
	}
	for _, context := range []int{-1, fi.MaxContexts} {
		if _, err := fi.RXAddress(dest, context); !errors.Is(err, fi.ErrUnknownPeer) {
			t.Errorf("context %d: %v", context, err)
		}
	}
	if _, err := fi.RXAddress(beyond, 1); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("context of a context: %v", err)
	}
	if same, err := fi.RXAddress(dest, 0); err != nil || same != dest {
		t.Errorf("context 0: %#x, %v", same, err)
	}
	last, err := f.av.Insert(ctx(t), fmt.Sprintf("%s/65535", f.server.Interface().MAC))
	b.ok(err)
	if m.Dest, err = fi.RXAddress(last, 1); err != nil {
		t.Error(err)
	}
	if err := ep.Atomic(m, 0); !errors.Is(err, fi.ErrUnknownPeer) {
		t.Errorf("beyond the last number: %v", err)
	}
}

// What a context has no use for is refused, and so is what is there already.
func TestScalableRefusals(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 16)
	b := &bench{t, f.client, f.server, f.av, f.dest, 1}
	make := func(a fi.ScalableAttr) error { _, err := f.client.NewScalableEndpoint(a); return err }
	s, err := f.client.NewScalableEndpoint(fi.ScalableAttr{Number: 30, TXContexts: 2, RXContexts: 2})
	b.ok(err)
	tx := func(i int, a fi.EndpointAttr) error { _, err := s.TransmitContext(i, a); return err }
	rx := func(i int) error { _, err := s.ReceiveContext(i); return err }
	endpoint := func(n int) error { _, err := f.client.NewEndpoint(fi.EndpointAttr{Number: n}); return err }
	foreign, err := f.server.NewAddressVector()
	b.ok(err)
	for name, try := range map[string]struct{ err, want error }{
		"too many":             {make(fi.ScalableAttr{TXContexts: fi.MaxContexts + 1}), fi.ErrCount},
		"fewer than none":      {make(fi.ScalableAttr{RXContexts: -1}), fi.ErrCount},
		"taken":                {make(fi.ScalableAttr{Number: 29, RXContexts: 2}), fi.ErrBusy},
		"taken by an endpoint": {make(fi.ScalableAttr{Number: 8, RXContexts: 2}), fi.ErrBusy},
		"number of a context":  {endpoint(31), fi.ErrBusy},
		"no vector":            {tx(0, fi.EndpointAttr{}), fi.ErrNoAV},
		"no vector to bind":    {s.Bind(nil), fi.ErrForeign},
		"foreign vector":       {s.Bind(foreign), fi.ErrForeign},
		"vector":               {s.Bind(f.av), nil},
		"second vector":        {s.Bind(f.av), fi.ErrBusy},
		"transmit":             {tx(1, fi.EndpointAttr{}), nil},
		"transmit again":       {tx(1, fi.EndpointAttr{}), fi.ErrBusy},
		"transmit beyond":      {tx(2, fi.EndpointAttr{}), fi.ErrCount},
		"transmit before":      {tx(-1, fi.EndpointAttr{}), fi.ErrCount},
		"transmit with number": {tx(0, fi.EndpointAttr{Number: 5}), fi.ErrNotImplemented},
		"receive":              {rx(1), nil},
		"receive again":        {rx(1), fi.ErrBusy},
		"receive beyond":       {rx(2), fi.ErrCount},
	} {
		if !errors.Is(try.err, try.want) {
			t.Errorf("%s: %v, want %v", name, try.err, try.want)
		}
	}
	if err := make(fi.ScalableAttr{Number: 0xffff, RXContexts: 2}); err == nil {
		t.Error("numbers beyond the last one")
	}
	recv, err := s.ReceiveContext(0)
	b.ok(err)
	send, err := s.TransmitContext(0, fi.EndpointAttr{})
	b.ok(err)
	cq, _ := f.client.NewCompletionQueue(fi.CQAttr{})
	for name, try := range map[string]struct{ err, want error }{
		"queue to receive":           {recv.Bind(cq, 0), fi.ErrBadFlags},
		"queue for both to receive":  {recv.Bind(cq, fi.BindRecv|fi.BindTransmit), fi.ErrBadFlags},
		"queue of events to send":    {send.Bind(cq, fi.BindRecv), fi.ErrBadFlags},
		"vector to receive":          {recv.Bind(f.av, 0), fi.ErrNotImplemented},
		"own counter to receive":     {recv.Bind(b.counter(), fi.BindRead), fi.ErrBadFlags},
		"vector to transmit":         {send.Bind(f.av, 0), fi.ErrBusy},
		"remote counter to transmit": {send.Bind(b.counter(), fi.BindRemoteRead), fi.ErrBadFlags},
	} {
		if !errors.Is(try.err, try.want) {
			t.Errorf("%s: %v, want %v", name, try.err, try.want)
		}
	}
	b.ok(recv.Enable())
	if err := recv.Atomic(b.add(0), 0); !errors.Is(err, fi.ErrNoAV) {
		t.Errorf("post by a receive context: %v", err)
	}
	if err := f.client.Close(); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("close of the domain: %v", err)
	}
	b.ok(f.client.CloseAll())
	if err := tx(0, fi.EndpointAttr{}); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("a context after the end: %v", err)
	}
	b.ok(s.Close())
	if err := rx(1); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("a context of a closed endpoint: %v", err)
	}
}

// Data come to the queue of the receive context that they are for, from the scalable
// endpoint whose context has posted them.
func TestScalableData(t *testing.T) {
	a, b, _ := onVeth(t, min(2, testnet.Granted(t).Queues), fi.DomainAttr{}, fi.DomainAttr{})
	bn := benchOf(t, a, b)
	theirs, err := b.NewScalableEndpoint(fi.ScalableAttr{Number: 40, RXContexts: 2})
	bn.ok(err)
	sources, err := b.NewAddressVector()
	bn.ok(err)
	_, err = sources.Insert(ctx(t), a.Name(3)) // another endpoint
	bn.ok(err)
	from, err := sources.Insert(ctx(t), a.Name(20))
	bn.ok(err)
	bn.ok(theirs.Bind(sources))
	var queues []*fi.CompletionQueue
	for i := range 2 {
		rx, err := theirs.ReceiveContext(i)
		bn.ok(err)
		cq, err := b.NewCompletionQueue(fi.CQAttr{})
		bn.ok(err)
		bn.ok(errors.Join(rx.Bind(cq, fi.BindRecv), rx.Enable()))
		queues = append(queues, cq)
	}
	mine, err := a.NewScalableEndpoint(fi.ScalableAttr{Number: 20, TXContexts: 2})
	bn.ok(err)
	av, err := a.NewAddressVector()
	bn.ok(err)
	dest, err := av.Insert(ctx(t), b.Name(40))
	bn.ok(err)
	bn.ok(mine.Bind(av))
	for i := range 2 {
		tx, err := mine.TransmitContext(i, fi.EndpointAttr{})
		bn.ok(err)
		cq, err := a.NewCompletionQueue(fi.CQAttr{})
		bn.ok(err)
		bn.ok(errors.Join(tx.Bind(cq, 0), tx.Enable()))
		at, err := fi.RXAddress(dest, 1-i)
		bn.ok(err)
		m := bn.fetchAdd(i)
		m.Dest, m.Data = at, uint64(100+i)
		bn.ok(tx.FetchAtomic(m, fi.FlagRemoteCQData))
		bn.ok(queues[1-i].Wait(ctx(t), 1))
		var c [2]fi.Completion
		if n, err := queues[1-i].Read(c[:]); n != 1 || err != nil || c[0].Data != uint64(100+i) || c[0].Source != from {
			t.Errorf("context %d: %d entries, %+v, %v, want data %d from %d", i, n, c[0], err, 100+i, from)
		}
	}
}

// The address of a receive context has a text, whether the vector is shared or not.
func TestLookupOfContexts(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 16)
	named, err := f.client.NewAddressVector(fi.AVAttr{Name: fmt.Sprintf("contexts-%d", os.Getpid())})
	if err != nil {
		t.Fatal(err)
	}
	for what, av := range map[string]*fi.AddressVector{"own": f.av, "shared": named} {
		a, err := av.Insert(ctx(t), f.server.Name(5))
		if err != nil {
			t.Fatal(err)
		}
		at, err := fi.RXAddress(a, 2)
		if err != nil {
			t.Fatal(err)
		}
		if s, err := av.Lookup(at); s != f.server.Name(7) || err != nil {
			t.Errorf("%s: %q, %v, want %q", what, s, err, f.server.Name(7))
		}
	}
}
