// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	fab "github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/fabrictest"
	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// quietDevice is a pipe with nodes behind IP addresses, whose next hops answer until
// quiet is true. From then on the search for one takes until its context ends.
type quietDevice struct {
	*node.PipeEnd
	quiet   *atomic.Bool
	waiting *atomic.Int64 // searches
}

func (d quietDevice) Link(ctx context.Context, a wire.Addr) (wire.Link, error) {
	if !a.IsIP() {
		return d.PipeEnd.Link(ctx, a)
	}
	if d.quiet.Load() {
		d.waiting.Add(1)
		<-ctx.Done()
		return wire.Link{}, context.Cause(ctx)
	}
	return d.LinkBy(a, wire.MAC{2, 0, 0, 0, 0, 0x0e})
}

func (d quietDevice) LinkBy(a wire.Addr, next wire.MAC) (wire.Link, error) {
	return wire.Link{Kind: a.Kind(), Local: d.Mac, Remote: next, LocalIP: netip.AddrFrom4([4]byte{10, 0, 0, 1}), RemoteIP: a.IP}, nil
}

// quietHost is a host on such a device, another one that may follow it, and a node at the
// other end with a region.
type quietHost struct {
	device  quietDevice
	present atomic.Pointer[xdpfab.Domain]
	far     *xdpfab.Domain
	words   *mr.Region // of far
}

func newQuietHost(t *testing.T) *quietHost {
	t.Helper()
	near, far := port.NewMemoryPair(node.PipeMTU, 1)
	q := &quietHost{device: quietDevice{&node.PipeEnd{Port: near, Mac: wire.MAC{2, 0, 0, 0, 0, 0x0a}}, new(atomic.Bool), new(atomic.Int64)}}
	q.next(t)
	q.far = adopted(t, &node.PipeEnd{Port: far, Mac: wire.MAC{2, 0, 0, 0, 0, 0x0b}})
	var err error
	if q.words, err = q.far.NewRegion("words", 4096); err != nil {
		t.Fatal(err)
	}
	ep, err := q.far.NewEndpoint(fi.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// next makes another host.
func (q *quietHost) next(t *testing.T) { q.present.Store(adopted(t, q.device)) }

// adopted makes a domain of a device, whose search for a next hop ends with the test.
func adopted(t *testing.T, dev node.Device) *xdpfab.Domain {
	t.Helper()
	f, err := fi.NewFabric(fi.DomainAttr{GiveUp: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	d, err := on(f.Adopt(dev))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.CloseAll() })
	return d
}

// dial connects to the present host.
func (q *quietHost) dial(t *testing.T) func(context.Context) (*share.Talk, error) {
	return func(context.Context) (*share.Talk, error) {
		own, other := pairOf(t)
		go func() { _ = q.present.Load().Hosting().Serve(other, host.GuestLimits{}) }()
		return share.NewTalk(own), nil
	}
}

// quietPoster is an endpoint of a guest, with the addresses of a node behind a next hop,
// and of far.
type quietPoster struct {
	q           *quietHost
	ep          *fi.Endpoint
	cq          *fi.CompletionQueue
	quiet, good fi.Address
}

func (q *quietHost) poster(t *testing.T, redial func(context.Context) (*share.Talk, error)) *quietPoster {
	t.Helper()
	g := guestBy(t, q.dial(t), fi.DomainAttr{GiveUp: time.Hour}, redial)
	av, err := g.NewAddressVector()
	cq, err2 := g.NewCompletionQueue(fi.CQAttr{Size: 16})
	ep, err3 := g.NewEndpoint(fi.EndpointAttr{Number: 9, Size: 16})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	p := &quietPoster{q: q, ep: ep, cq: cq}
	ctx := fabrictest.Context(t)
	p.quiet, err = av.Insert(ctx, "10.0.0.9")
	p.good, err2 = av.Insert(ctx, q.far.Name(0))
	if err := errors.Join(err, err2, ep.Bind(av, 0), ep.Bind(cq, 0), ep.Enable()); err != nil {
		t.Fatal(err)
	}
	return p
}

// adds posts an addition to the first word of each address.
func (p *quietPoster) adds(to ...fi.Address) error {
	for _, a := range to {
		err := p.ep.Atomic(&fi.Msg{Dest: a, Key: p.q.words.Key(), Buf: []byte{1, 0, 0, 0, 0, 0, 0, 0},
			Datatype: fab.Uint64, Op: fab.Sum}, 0)
		if err != nil {
			return err
		}
	}
	return nil
}

// An endpoint's first post to an address does not wait for the next hop, which was found
// when the address was inserted: neither that post, nor others behind it.
func TestFirstPostDoesNotSearch(t *testing.T) {
	p := newQuietHost(t).poster(t, nil)
	p.q.device.quiet.Store(true)
	posted := make(chan error, 1)
	go func() { posted <- p.adds(p.quiet, p.good) }()
	select {
	case err := <-posted:
		if err != nil {
			t.Fatal(err)
		}
	case <-fabrictest.Context(t).Done():
		t.Fatal("the post waits for a next hop that does not answer")
	}
	if c := one(t, p.cq); c.Err != nil {
		t.Errorf("at the peer that can be reached: %v", c.Err)
	}
}

// A domain finds the next host also if a peer's next hop does not answer.
func TestSilentHopKeepsNoHostAway(t *testing.T) {
	q := newQuietHost(t)
	p := q.poster(t, q.dial(t))
	if err := p.adds(p.quiet, p.good); err != nil {
		t.Fatal(err)
	}
	if c := one(t, p.cq); c.Err != nil {
		t.Fatalf("at the peer that can be reached: %v", c.Err)
	}
	q.device.quiet.Store(true)
	if err := q.present.Load().CloseAll(); err != nil {
		t.Fatal(err)
	}
	if c := one(t, p.cq); !errors.Is(c.Err, fi.ErrHostLost) {
		t.Fatalf("at the other one, when the host has ended: %v", c.Err)
	}
	q.next(t)
	testnet.Eventually(t, "another host serves the program", func() bool {
		return p.adds(p.good) == nil && one(t, p.cq).Err == nil
	})
}

// Calls that wait for next hops which do not answer delay no other call, neither of the
// same program nor of another one.
func TestSilentHopsDelayNoCall(t *testing.T) {
	q := newQuietHost(t)
	q.device.quiet.Store(true)
	ctx := fabrictest.Context(t)
	attach := func(origin uint64) *guestpkg.Attached {
		talk, err := q.dial(t)(ctx)
		if err != nil {
			t.Fatal(err)
		}
		dev, err := guestpkg.Attach(ctx, talk, "test", nil)
		if err == nil {
			_, _, err = dev.Number(share.Endpoint{Number: node.AnyNumber, Origin: origin})
		}
		if err != nil {
			t.Fatal(err)
		}
		return dev
	}
	one, other := attach(1), attach(2)
	good := share.Addr(wire.Addr{MAC: wire.MAC{2, 0, 0, 0, 0, 0x0b}})
	const calls = 1000
	var answered, waiting sync.WaitGroup
	for i := range calls {
		if i%10 == 0 {
			answered.Go(func() {
				if _, err := one.Peer(ctx, share.Peer{Origin: 1, Addr: good}); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			})
			continue
		}
		quiet := share.Addr(wire.Addr{IP: netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})})
		waiting.Go(func() {
			if _, err := one.Peer(ctx, share.Peer{Origin: 1, Addr: quiet}); err == nil {
				t.Errorf("call %d: found a way where there is none", i)
			}
		})
	}
	answered.Wait()
	testnet.Eventually(t, "the calls wait", func() bool { return q.device.waiting.Load() == calls*9/10 })
	if _, err := one.Counters(); err != nil {
		t.Error(err)
	}
	if _, err := other.Peer(ctx, share.Peer{Origin: 2, Addr: good}); err != nil {
		t.Error(err)
	}
	if n := q.device.waiting.Load(); n != calls*9/10 {
		t.Errorf("%d calls wait, want all %d", n, calls*9/10)
	}
	if err := errors.Join(one.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	waiting.Wait()
}
