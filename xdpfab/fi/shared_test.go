// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// sharing makes an endpoint with a shared transmit context.
func (b *bench) sharing(x *fi.SharedTransmit, size int) (*fi.Endpoint, *fi.CompletionQueue) {
	b.Helper()
	cq, err := b.client.NewCompletionQueue(fi.CQAttr{})
	b.ok(err)
	ep, err := b.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, Size: size})
	b.ok(err)
	b.ok(errors.Join(ep.Bind(b.av, 0), ep.Bind(cq, 0), ep.Bind(x, 0), ep.Enable()))
	return ep, cq
}

// Endpoints share the places of a transmit context: what one has in flight the other
// cannot have, and it can once that has completed. The orders of the endpoints are their
// own, and so are their queues.
func TestSharedTransmit(t *testing.T) {
	onEveryWire(t, func(b *bench) {
		x, err := b.client.NewSharedTransmit(fi.SharedTransmitAttr{Size: 8})
		b.ok(err)
		gate := b.counter()
		one, oneCQ := b.sharing(x, 64)
		two, twoCQ := b.sharing(x, 4)
		for range 7 { // deferred, so that they stay in flight
			b.ok(one.Atomic(when(b.add(0), gate, 1), 0))
		}
		b.ok(two.Atomic(when(b.add(1), gate, 1), 0))
		for name, ep := range map[string]*fi.Endpoint{"one": one, "two": two} {
			if err := ep.Atomic(b.add(0), 0); !errors.Is(err, fi.ErrAgain) {
				b.Errorf("%s, the ninth operation: %v", name, err)
			}
			if err := ep.Atomic(when(b.add(0), gate, 1), 0); !errors.Is(err, fi.ErrAgain) {
				b.Errorf("%s, the ninth deferred operation: %v", name, err)
			}
		}
		gate.Add(1)
		b.take(oneCQ, 7)
		b.take(twoCQ, 1)
		if i := two.Info(); i.Endpoint.TXContexts != fi.SharedContext || i.Transmit.Size != 4 {
			b.Errorf("%v contexts of %v", i.Endpoint.TXContexts, i.Transmit.Size)
		}
		if i := one.Info(); i.Transmit.Size != 8 {
			b.Errorf("size %v, want that of the shared context", i.Transmit.Size)
		}
		if n, m := b.load(one, oneCQ, 0), b.load(one, oneCQ, 1); n != 7 || m != 1 {
			b.Errorf("%d and %d, want 7 and 1", n, m)
		}
		// No place gets lost, however many post at a time, by whatever way.
		const each = 200
		var all sync.WaitGroup
		for _, ep := range []*fi.Endpoint{one, two} {
			for range 2 {
				all.Go(func() {
					for n := 0; n < each; {
						switch err := ep.InjectAtomic(b.add(2)); {
						case err == nil:
							n++
						case errors.Is(err, fi.ErrAgain):
							time.Sleep(10 * time.Microsecond)
						default:
							b.Error(err)
							return
						}
					}
				})
			}
		}
		all.Wait()
		testnet.Eventually(b.T, "all have run", func() bool { return b.tryLoad(one, oneCQ, 2) == 4*each })
		for range 8 { // places come back with the completions, which may be later than the effects
			testnet.Eventually(b.T, "a place is free", func() bool {
				err := one.Atomic(when(b.add(0), gate, 2), 0)
				if err != nil && !errors.Is(err, fi.ErrAgain) {
					b.Fatal(err)
				}
				return err == nil
			})
		}
		b.ok(one.Close())
		for _, done := range b.take(oneCQ, 8) {
			if !errors.Is(done.Err, fi.ErrCancelled) {
				b.Errorf("%v", done.Err)
			}
		}
		for range 8 { // a closed endpoint gives its places back
			b.ok(two.Atomic(when(b.add(0), gate, 0), 0))
			b.take(twoCQ, 1)
		}
	})
}

// tryLoad is load as soon as there is a place.
func (b *bench) tryLoad(ep *fi.Endpoint, cq *fi.CompletionQueue, i int) uint64 {
	m := b.fetchAdd(i)
	m.Op = atomic.Read
	if err := ep.FetchAtomic(m, 0); errors.Is(err, fi.ErrAgain) {
		return 0
	} else if err != nil {
		b.Fatal(err)
	}
	b.take(cq, 1)
	return before(m)
}

// A shared context is bound once, without flags, in its own domain, before Enable; and it
// stays open as long as it is bound.
func TestSharedTransmitRefusals(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 16)
	b := &bench{t, f.client, f.server, f.av, f.dest, 1}
	x, err := f.client.NewSharedTransmit(fi.SharedTransmitAttr{Size: 5})
	b.ok(err)
	if x.Attr().Size != 8 {
		t.Errorf("size %d", x.Attr().Size)
	}
	foreign, err := f.server.NewSharedTransmit(fi.SharedTransmitAttr{})
	b.ok(err)
	if _, err := f.client.NewSharedTransmit(fi.SharedTransmitAttr{Size: -1}); !errors.Is(err, fi.ErrCount) {
		t.Errorf("negative size: %v", err)
	}
	ep, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	b.ok(err)
	for name, try := range map[string]struct{ err, want error }{
		"flags":     {ep.Bind(x, fi.BindTransmit), fi.ErrBadFlags},
		"foreign":   {ep.Bind(foreign, 0), fi.ErrForeign},
		"bound":     {ep.Bind(x, 0), nil},
		"twice":     {ep.Bind(x, 0), fi.ErrBusy},
		"close":     {x.Close(), fi.ErrBusy},
		"endpoint":  {ep.Close(), nil},
		"close now": {errors.Join(x.Close(), x.Close()), nil},
	} {
		if !errors.Is(try.err, try.want) {
			t.Errorf("%s: %v, want %v", name, try.err, try.want)
		}
	}
	last, err := f.client.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber})
	b.ok(err)
	if err := last.Bind(x, 0); !errors.Is(err, fi.ErrClosed) {
		t.Errorf("bound when closed: %v", err)
	}
}
