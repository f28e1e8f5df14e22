// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// postingTo gives a client what it needs to post to a server, one operation at a time.
func postingTo(t *testing.T, client, server *xdpfab.Domain) *fixture {
	t.Helper()
	f := &fixture{client: client, server: server}
	var err, err2, err3 error
	f.av, err = client.NewAddressVector()
	f.cq, err2 = client.NewCompletionQueue(fi.CQAttr{Size: 64})
	f.ep, err3 = client.NewEndpoint(fi.EndpointAttr{Number: 9, Size: 64})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.ep.Bind(f.av, 0), f.ep.Bind(f.cq, 0), f.ep.Enable()); err != nil {
		t.Fatal(err)
	}
	if f.dest, err = f.av.Insert(ctx(t), server.Name(0)); err != nil {
		t.Fatal(err)
	}
	return f
}

// Counters of a resident region are those of any region, for every sort of operation, no
// matter whether the XDP program or the poller has applied it.
func TestResidentCounters(t *testing.T) {
	for name, events := range map[string]fi.CounterEvents{"operations": fi.CountCompletions, "bytes": fi.CountBytes} {
		t.Run(name, func(t *testing.T) {
			a, b, hot := onResident(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
			c := counters(t, b, 2, fi.CounterAttr{Events: events})
			if err := errors.Join(b.BindRegion(hot, c[0], fi.BindRemoteRead), b.BindRegion(hot, c[1], fi.BindRemoteWrite)); err != nil {
				t.Fatal(err)
			}
			f := postingTo(t, a, b)
			var reads, writes uint64
			for _, dt := range []atomic.Datatype{atomic.Uint64, atomic.Double} { // the program's, and the poller's
				for _, x := range remotes {
					for range x.again {
						m := x.msg(f.dest, hot.Key())
						m.Datatype = dt
						if err := post(f, x.form, &m); err != nil {
							t.Fatal(err)
						}
						if done := next2(t, f); (done.Err != nil) != x.bad {
							t.Fatalf("%+v: %v", x, done.Err)
						}
						read, written := x.counts(events)
						reads, writes = reads+read, writes+written
						if c[0].Read() != reads || c[1].Read() != writes || c[0].ReadErr()+c[1].ReadErr() != 0 {
							t.Fatalf("after %v %+v: counters are at %d and %d, want %d and %d", dt, x, c[0].Read(), c[1].Read(), reads, writes)
						}
					}
				}
			}
			if program, all := stat(t, b, "resident_requests_executed"), stat(t, b, "requests_executed"); program == 0 || all == 0 {
				t.Errorf("the program has executed %d requests, and the poller %d: want some of both", program, all)
			}
		})
	}
}

// On a bad wire, what comes again is counted once.
func TestResidentCountersOnABadWire(t *testing.T) {
	testnet.Require(t)
	if testnet.KernelBefore(t, 5, 18) {
		t.Skip("needs Linux 5.18: see TestResidentRefused")
	}
	w := faultwire.New(t, faultwire.Options{Seed: 2})
	server, client := serveOn(t, w.B), openOn(t, w.A, fi.DomainAttr{})
	hot, err := server.NewResidentRegion("hot", 4096)
	if err != nil {
		t.Fatal(err)
	}
	c := counters(t, server, 1)[0]
	if err := server.BindRegion(hot, c, fi.BindRemoteRead); err != nil {
		t.Fatal(err)
	}
	w.SetBoth(faultwire.Faults{Loss: 0.05, Duplicate: 0.1, Reorder: 0.1, Corrupt: 0.02, Replay: 0.02})
	p, err := client.Dial(ctx(t), server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	words, err := xdpfab.Vector[uint64](ctx(t), p, "hot")
	reals, err2 := xdpfab.Vector[float64](ctx(t), p, "hot")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	rng, want := rand.New(rand.NewPCG(1, 2)), uint64(0)
	for range reduced(60, 30) {
		n := 1 + rng.IntN(400)
		at, sums := make([]uint64, n), make([]uint64, n)
		if rng.IntN(3) == 0 {
			err = reals.Add(ctx(t), at, make([]float64, n), make([]float64, n))
		} else {
			err = words.Add(ctx(t), at, sums, sums)
		}
		if want += uint64(n); err != nil || c.Read() != want {
			t.Fatalf("%v; %d operations are counted, want %d", err, c.Read(), want)
		}
	}
}

// Whoever waits for a counter of a resident region wakes up, though the poller has
// nothing to do: a goroutine, a file descriptor, and deferred work; and so does the
// goroutine that makes progress by hand.
func TestResidentCounterWakes(t *testing.T) {
	for name, attr := range map[string]fi.DomainAttr{
		"auto":   {},
		"manual": {Progress: fi.ProgressManual},
		"alone":  {Progress: fi.ProgressManual, Threading: fi.ThreadDomain},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, hot := onResident(t, 1, fi.DomainAttr{}, attr)
			c := counters(t, b, 2)
			if err := b.BindRegion(hot, c[0], fi.BindRemoteRead|fi.BindRemoteWrite); err != nil {
				t.Fatal(err)
			}
			w := fi.CounterWork{Counter: c[1], Value: 7}
			if err := b.QueueWork(&fi.Work{When: fi.Threshold{Counter: c[0], Value: 30}, Do: w}); err != nil {
				t.Fatal(err)
			}
			dialled := make(chan *xdpfab.Remote[uint64], 1)
			go func() {
				defer close(dialled)
				p, err := a.Dial(ctx(t), b.Name(0))
				if err != nil {
					t.Error(err)
					return
				}
				word := xdpfab.WordAt[uint64](p, fi.RemoteRegion{Key: hot.Key()}, 1)
				for range 5 {
					if _, err := word.Add(ctx(t), 1); err != nil {
						t.Error(err)
						return
					}
				}
				dialled <- &word
			}()
			if err := c[0].Wait(ctx(t), 5); err != nil {
				t.Fatal(err)
			}
			word := <-dialled
			if word == nil {
				return
			}
			var adding sync.WaitGroup
			adding.Go(func() {
				for range 25 {
					if _, err := word.Add(ctx(t), 1); err != nil {
						t.Error(err)
					}
				}
			})
			defer adding.Wait()                          // the last is counted before its answer arrives
			if err := c[1].Wait(ctx(t), 7); err != nil { // which the work moves
				t.Fatal(err)
			}
			if n := c[0].Read(); n != 30 {
				t.Errorf("%d operations are counted, want 30", n)
			}
		})
	}
}

// A counter that is set, or bound late, counts what is applied after that; one that a
// region holds stays open; and the next region counts from its own beginning.
func TestResidentCounterEnds(t *testing.T) {
	a, b, hot := onResident(t, 1, fi.DomainAttr{}, fi.DomainAttr{})
	p, err := a.Dial(ctx(t), b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w := wordOf(t, p, "hot")
	add := func(n int) {
		t.Helper()
		for range n {
			if _, err := w.Add(ctx(t), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	add(5)
	c := counters(t, b, 2)
	if err := b.BindRegion(hot, c[0], fi.BindRemoteRead); err != nil {
		t.Fatal(err)
	}
	add(3)
	if n := c[0].Read(); n != 3 {
		t.Errorf("%d are counted since the binding, want 3", n)
	}
	add(2)
	c[0].Set(100)
	if err := b.BindRegion(hot, c[1], fi.BindRemoteRead|fi.BindRemoteWrite); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("a second counter: %v, want ErrBusy", err)
	}
	if err := b.BindRegion(hot, c[1], fi.BindRemoteWrite); err != nil {
		t.Error(err)
	}
	add(1)
	if n, other := c[0].Read(), c[1].Read(); n != 101 || other != 0 {
		t.Errorf("%d and %d are counted, want 101 and 0", n, other)
	}
	add(4)
	if err := c[0].Close(); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("closing a counter that a region has: %v, want ErrBusy", err)
	}
	if err := hot.Close(); err != nil {
		t.Fatal(err)
	}
	if n := c[0].Read(); n != 105 {
		t.Errorf("%d are counted when the region is closed, want 105", n)
	}
	next, err := b.NewResidentRegion("hot", 4096)
	if err != nil {
		t.Fatal(err)
	}
	w = wordOf(t, p, "hot")
	add(2)
	if err := b.BindRegion(next, c[1], fi.BindRemoteRead); err != nil {
		t.Fatal(err)
	}
	add(6)
	if n, other := c[0].Read(), c[1].Read(); n != 105 || other != 6 {
		t.Errorf("%d and %d are counted, want 105 and 6", n, other)
	}
	if err := errors.Join(c[0].Close(), next.Close(), c[1].Close()); err != nil {
		t.Error(err)
	}
}

// A counter is its process's: what the kernel executes after it is not counted, and that
// of the next domain begins with the binding, after a death and in a takeover. There it
// counts what is executed before Resume, too.
func TestResidentCounterStartsOver(t *testing.T) {
	for name, over := range map[string]func(e *estate, bind func(*xdpfab.Domain) error, add func(int)){
		"death": func(e *estate, bind func(*xdpfab.Domain) error, add func(int)) {
			if err := e.dom.CloseAll(); err != nil {
				t.Error(err)
			}
			e.forget()
			add(20)
			d, err := e.tryOpen(e.attr)
			if err := errors.Join(err, e.furnish(d), bind(d)); err != nil {
				t.Fatal(err)
			}
			e.has(d)
			add(3)
			d.Resume()
		},
		"takeover": func(e *estate, bind func(*xdpfab.Domain) error, add func(int)) {
			h := e.handOver()
			add(20)
			d, err := e.take(h, e.attr, func(d *xdpfab.Domain) error { return errors.Join(e.furnish(d), bind(d)) })
			if err != nil {
				t.Fatal(err)
			}
			e.has(d)
			add(3)
			d.Resume()
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			net := testnet.NewPair(t, testnet.Options{})
			e := newEstate(t, net.B, fi.DomainAttr{ResidentLeave: true}, true)
			var c *fi.Counter
			bind := func(d *xdpfab.Domain) error {
				c = counters(t, d, 1)[0]
				return d.BindRegion(e.hot, c, fi.BindRemoteRead)
			}
			if err := bind(e.dom); err != nil {
				t.Fatal(err)
			}
			w := wordOf(t, e.dial(net.A), "hot")
			add := func(n int) {
				for range n {
					if _, err := w.Add(ctx(t), 1); err != nil {
						t.Fatal(err)
					}
				}
			}
			add(30)
			former := c
			if n := former.Read(); n != 30 {
				t.Errorf("%d are counted, want 30", n)
			}
			over(e, bind, add)
			add(4)
			if n := c.Read(); n != 7 {
				t.Errorf("the next domain has counted %d, want 7", n)
			}
			if n := former.Read(); n != 30 {
				t.Errorf("the former one has counted %d, want 30", n)
			}
			if v, err := w.Load(ctx(t)); v != 57 || err != nil {
				t.Errorf("the word is %d, %v; want 57", v, err)
			}
		})
	}
}
