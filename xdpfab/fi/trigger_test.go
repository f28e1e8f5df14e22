// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"sync"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// when defers an operation.
func when(m *fi.Msg, c *fi.Counter, value uint64) *fi.Msg {
	m.Trigger = &fi.Threshold{Counter: c, Value: value}
	m.Context = m
	return m
}

// Operations start when the counter reaches their thresholds, in the order of these, and
// with the same threshold in the order posted; one that is due already starts at once.
func TestTriggerOrder(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		c := b.counter()
		ep, cq := b.endpoint(fi.EndpointAttr{})
		var ops []*fi.Msg
		for _, threshold := range []uint64{3, 1, 2, 1, 3} {
			m := when(b.fetchAdd(0), c, threshold)
			b.ok(ep.FetchAtomic(m, 0))
			ops = append(ops, m)
		}
		// An operation that is not deferred overtakes them all.
		b.ok(ep.Atomic(b.add(1), 0))
		b.take(cq, 1)
		if n := b.load(ep, cq, 0); n != 0 {
			b.Fatalf("%d operations ran before their time", n)
		}
		c.AddErr(5)
		b.nothing(cq)
		c.Add(1)
		b.take(cq, 2)
		if n := b.load(ep, cq, 0); n != 2 {
			b.Fatalf("%d operations ran at 1, want 2", n)
		}
		c.Set(100)
		b.take(cq, 3)
		for i, want := range []uint64{3, 0, 2, 1, 4} {
			if got := before(ops[i]); got != want {
				b.Errorf("operation %d found %d, want %d", i, got, want)
			}
		}
		late := when(b.fetchAdd(0), c, 100)
		b.ok(ep.FetchAtomic(late, 0))
		if done := b.take(cq, 1); done[0].Context != late || before(late) != 5 || done[0].Bytes != 8 || done[0].Endpoint != ep {
			b.Errorf("%+v, found %d", done[0], before(late))
		}
		b.nothing(cq)
		b.ok(errors.Join(ep.Close(), c.Close()))
	})
}

// The completion of one operation starts the next, without the caller: a chain as long as
// the endpoint is big, of all forms, on several words and of long operands.
func TestTriggerChain(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		const length = 64
		c := b.counter()
		ep, cq := b.endpoint(fi.EndpointAttr{Size: 2 * length}, c)
		for i := range length {
			m := when(b.fetchAdd(0), c, uint64(i+1))
			switch i % 4 {
			case 0:
				b.ok(ep.FetchAtomic(m, 0))
			case 1:
				m.Result = nil
				b.ok(ep.Atomic(m, fi.FlagInject))
			case 2: // takes the place of what the others have added so far
				m.Op, m.Compare, m.Buf = atomic.Cswap, []byte{byte(i), 0, 0, 0, 0, 0, 0, 0}, []byte{byte(i + 1), 0, 0, 0, 0, 0, 0, 0}
				b.ok(ep.CompareAtomic(m, 0))
			case 3:
				m.Buf, m.Result = make([]byte, 3000), make([]byte, 3000)
				m.Buf[0], m.Buf[2992] = 1, 1
				b.ok(ep.FetchAtomic(m, 0))
			}
		}
		kick := b.fetchAdd(500)
		b.ok(ep.FetchAtomic(kick, 0))
		b.ok(c.Wait(ctx(b.T), length+1))
		b.take(cq, length+1)
		if n, last := b.load(ep, cq, 0), b.load(ep, cq, 374); n != length || last != length/4 {
			b.Errorf("%d and %d, want %d and %d", n, last, length, length/4)
		}
	})
}

// What peers do to memory starts operations of its owner.
func TestTriggerByPeers(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		theirs, err := b.client.NewRegion("mine", 64)
		b.ok(err)
		c := b.counter()
		b.ok(b.client.BindRegion(theirs, c, fi.BindRemoteWrite))
		ep, cq := b.endpoint(fi.EndpointAttr{})
		b.ok(ep.Atomic(when(b.add(0), c, 3), 0))
		serve, err := b.client.NewEndpoint(fi.EndpointAttr{Number: 0})
		b.ok(err)
		b.ok(serve.Enable())
		stop := make(chan struct{})
		var moving sync.WaitGroup
		moving.Go(func() { // with manual progress the client answers only if it is called
			for {
				select {
				case <-stop:
					return
				default:
					b.client.Progress()
				}
			}
		})
		peer, err := b.server.Dial(ctx(b.T), b.client.Name(0))
		b.ok(err)
		w, err := xdpfab.Word[uint64](ctx(b.T), peer, "mine", 0)
		b.ok(err)
		for range 3 {
			b.ok(w.Store(ctx(b.T), 7))
		}
		close(stop)
		moving.Wait()
		b.take(cq, 1)
		if n := b.load(ep, cq, 0); n != 1 {
			b.Errorf("%d, want 1", n)
		}
	})
}

// Triggers that mean nothing are refused, the number of deferred operations is bounded,
// and what they need cannot be closed.
func TestTriggerRefusals(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 16)
	b := &bench{t, f.client, f.server, f.av, f.dest, 1}
	c := b.counter()
	ep, cq := b.endpoint(fi.EndpointAttr{Size: 8})
	other, err := f.server.NewCounter()
	b.ok(err)
	for name, at := range map[string]*fi.Threshold{"no counter": {Value: 1}, "another domain's": {Counter: other}} {
		m := b.add(0)
		m.Trigger = at
		if err := ep.Atomic(m, 0); !errors.Is(err, fi.ErrForeign) {
			t.Errorf("%s: %v", name, err)
		}
	}
	closed := b.counter()
	b.ok(closed.Close())
	if err := ep.Atomic(when(b.add(0), closed, 1), 0); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("closed counter: %v", err)
	}
	bad := when(b.add(0), c, 1)
	bad.Buf = bad.Buf[:3]
	if err := ep.Atomic(bad, 0); !errors.Is(err, fi.ErrLength) {
		t.Errorf("short operand: %v, want it checked when posted", err)
	}
	for range 8 {
		b.ok(ep.Atomic(when(b.add(0), c, 1), 0))
	}
	if err := ep.Atomic(when(b.add(0), c, 1), 0); !errors.Is(err, fi.ErrAgain) {
		t.Errorf("one too many: %v", err)
	}
	if err := c.Close(); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("close of a counter that is waited for: %v", err)
	}
	c.Add(1)
	b.take(cq, 8)
	b.ok(ep.Atomic(when(b.add(0), c, 1), 0))
	b.take(cq, 1)
	b.ok(c.Close())
	if caps := f.client.Info().Caps; caps&fi.CapTrigger == 0 {
		t.Errorf("capabilities %v", caps)
	}
}

// When the endpoint is closed, an operation that waits completes as cancelled, and those
// of other endpoints go on waiting. Shutdown does not wait for it.
func TestTriggerCancelled(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		c, mine := b.counter(), b.counter()
		ep, cq := b.endpoint(fi.EndpointAttr{}, mine)
		rest, restCQ := b.endpoint(fi.EndpointAttr{})
		m := when(b.add(0), c, 1)
		b.ok(errors.Join(ep.Atomic(m, 0), rest.Atomic(when(b.add(1), c, 1), 0), ep.InjectAtomic(when(b.add(0), c, 2))))
		b.ok(ep.Shutdown(ctx(b.T)))
		for i, done := range b.take(cq, 2) {
			var oe *fi.OpError
			if !errors.As(done.Err, &oe) || !errors.Is(oe, fi.ErrNotExecuted) || oe.Cause != fi.ErrCancelled || !errors.Is(oe, syscall.ECANCELED) {
				b.Errorf("%d: %v", i, done.Err)
			}
			if i == 0 && done.Context != m {
				b.Errorf("context %v", done.Context)
			}
		}
		b.counts("failures", mine, 0, 2)
		if err := ep.Atomic(when(b.add(0), c, 1), 0); !errors.Is(err, fi.ErrClosed) {
			b.Errorf("post after Close: %v", err)
		}
		c.Add(5)
		b.take(restCQ, 1)
		if a, other := b.load(rest, restCQ, 0), b.load(rest, restCQ, 1); a != 0 || other != 1 {
			b.Errorf("%d and %d, want 0 and 1", a, other)
		}
		b.ok(c.Close())
	})
}

// Whatever many goroutines do at the same time, each operation runs once.
func TestTriggersTogether(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		const posters, each = 4, 100
		c := b.counter()
		done := b.counter()
		ep, cq := b.endpoint(fi.EndpointAttr{Size: 32}, done)
		var all sync.WaitGroup
		for range posters {
			all.Go(func() {
				for n := 0; n < each; {
					switch err := ep.Atomic(when(b.add(0), c, uint64(n+1)), 0); {
					case err == nil:
						c.Add(1)
						n++
					case !errors.Is(err, fi.ErrAgain):
						b.Error(err)
						return
					}
				}
			})
		}
		for got := 0; got < posters*each; {
			got += len(b.take(cq, 1))
		}
		all.Wait()
		if n := b.load(ep, cq, 0); n != posters*each {
			b.Errorf("%d operations ran, want %d", n, posters*each)
		}
		b.counts("completions", done, posters*each+1, 0)
		b.ok(errors.Join(ep.Close(), c.Close(), done.Close()))
	})
}

// An operation that is deferred survives the loss of its peer's name: it fails when its
// time comes.
func TestTriggerWithoutPeer(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 16)
	b := &bench{t, f.client, f.server, f.av, f.dest, 1}
	c := b.counter()
	ep, cq := b.endpoint(fi.EndpointAttr{})
	b.ok(ep.Atomic(when(b.add(0), c, 1), 0))
	b.ok(f.av.Remove(f.dest))
	c.Add(1)
	if done := b.take(cq, 1); !errors.Is(done[0].Err, fi.ErrNotExecuted) {
		t.Errorf("%v", done[0].Err)
	}
	testnet.Eventually(t, "the counter is free", func() bool { return c.Close() == nil })
}
