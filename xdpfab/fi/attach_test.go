// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

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

// hostingOf has a domain host whoever connects, and returns how to connect.
func hostingOf(t testing.TB, d *xdpfab.Domain, limits ...host.GuestLimits) func(context.Context) (*share.Talk, error) {
	t.Helper()
	return fabrictest.Hosting(t, d.Domain, limits...)
}

// guestOf returns a domain that is a guest of d.
func guestOf(t testing.TB, d *xdpfab.Domain, attr fi.DomainAttr) *xdpfab.Domain {
	t.Helper()
	return guestBy(t, hostingOf(t, d), attr, nil)
}

// GuestOf is guestOf for the tests outside the package.
var GuestOf = guestOf

// NarrowGuestOf returns a guest of d with the smallest ring of arrivals. It takes
// NarrowEvents events that have no place in their queue: half of them wait in its memory,
// and half in the ring.
func NarrowGuestOf(t testing.TB, d *xdpfab.Domain) *xdpfab.Domain {
	return guestBy(t, hostingOf(t, d, host.GuestLimits{Arrivals: share.MinArrivals}), fi.DomainAttr{}, nil)
}

const NarrowEvents = 2 * share.MinArrivals / 128

// TryGuestOf returns the error of a domain that cannot be a guest of d.
func TryGuestOf(t testing.TB, d *xdpfab.Domain, attr fi.DomainAttr) error {
	t.Helper()
	talk, err := hostingOf(t, d)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := guestpkg.Attach(t.Context(), talk, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := fi.NewFabric(attr)
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Adopt(dev)
	if err == nil {
		t.Error(g.CloseAll())
	}
	return err
}

// guestBy returns a domain that is a guest of whoever dial leads to, and of redial later.
func guestBy(t testing.TB, dial func(context.Context) (*share.Talk, error), attr fi.DomainAttr, redial func(context.Context) (*share.Talk, error)) *xdpfab.Domain {
	t.Helper()
	talk, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := guestpkg.Attach(t.Context(), talk, "test", redial)
	if err != nil {
		t.Fatal(err)
	}
	attr = attr.WithoutClock() // a Clock has one domain, here the host
	f, err := fi.NewFabric(attr)
	if err != nil {
		t.Fatal(err)
	}
	g, err := f.Adopt(dev)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.CloseAll(); err != nil {
			t.Error(err)
		}
	})
	return &xdpfab.Domain{Domain: g}
}

// pipeWithRegion returns two ends of a pipe; the second has a region of so many bytes.
func pipeWithRegion(t *testing.T, size int) (a, b *xdpfab.Domain, r *mr.Region) {
	t.Helper()
	testnet.SkipOnNICs(t, "a Pipe")
	a, b, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if a.CloseAll() != nil || b.CloseAll() != nil {
			t.Error("close")
		}
	})
	if r, err = b.NewRegion("words", size); err != nil {
		t.Fatal(err)
	}
	ep, err := b.NewEndpoint(fi.EndpointAttr{})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	return a, b, r
}

// A guest does what a domain with an interface does: words, arrays, transfers of any
// length, in both progress modes.
func TestGuest(t *testing.T) {
	for _, mode := range []fi.ProgressMode{fi.ProgressAuto, fi.ProgressManual} {
		t.Run(mode.String(), func(t *testing.T) {
			a, b, region := pipeWithRegion(t, 4<<20)
			g := guestOf(t, a, fi.DomainAttr{Progress: mode})
			ctx := t.Context()
			p, err := g.Dial(ctx, b.Name(0))
			if err != nil {
				t.Fatal(err)
			}
			hits, err := xdpfab.Word[uint64](ctx, p, "words", 8)
			if err != nil {
				t.Fatal(err)
			}
			for i := range uint64(1000) {
				if n, err := hits.Add(ctx, 1); n != i+1 || err != nil {
					t.Fatalf("add %d: %d, %v", i, n, err)
				}
			}
			rr, err := p.Lookup(ctx, "words")
			if err != nil {
				t.Fatal(err)
			}
			long := random(rand.New(rand.NewPCG(1, 2)), reduced(3<<20, 1<<20+8192))
			if err := p.Write(ctx, rr, 4096, long); err != nil {
				t.Fatal(err)
			}
			if string(region.Bytes()[4096:][:len(long)]) != string(long) {
				t.Error("what was written is not there")
			}
			back := make([]byte, len(long))
			if err := p.Read(ctx, rr, 4096, back); err != nil || string(back) != string(long) {
				t.Errorf("read back: %v", err)
			}
			if _, err := p.Lookup(ctx, "nothing"); err == nil {
				t.Error("found a region that is not there")
			}
		})
	}
}

// Many goroutines of several guests count together, and nothing is lost or doubled.
func TestGuestsCount(t *testing.T) {
	a, b, region := pipeWithRegion(t, 4096)
	const guests, each = 3, 4
	adds := reduced(500, 100)
	var wg sync.WaitGroup
	for range guests {
		g := guestOf(t, a, fi.DomainAttr{})
		for range each {
			wg.Go(func() {
				ctx := context.Background()
				p, err := g.Dial(ctx, b.Name(0))
				if err != nil {
					t.Error(err)
					return
				}
				w, err := xdpfab.Word[uint64](ctx, p, "words", 0)
				if err != nil {
					t.Error(err)
					return
				}
				for range adds {
					if _, err := w.Add(ctx, 1); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	w, err := region.Uint64(0)
	if err != nil {
		t.Fatal(err)
	}
	if n := w.Load(); n != uint64(guests*each*adds) {
		t.Errorf("%d, want %d", n, guests*each*adds)
	}
}

// Peers operate on the memory of a guest through the host, which goes on while the guest
// does nothing; and the guest sees the changes.
func TestGuestServes(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	g := guestOf(t, a, fi.DomainAttr{Progress: fi.ProgressManual})
	mem, err := mr.Memfd("guest", 8192)
	if err != nil {
		t.Fatal(err)
	}
	r, err := g.Register(mem, mr.Options{Name: "mine", Access: mr.RemoteRead | mr.RemoteWrite, Offset: 4096})
	if err != nil {
		t.Fatal(err)
	}
	ep, err := g.NewEndpoint(fi.EndpointAttr{Number: 7})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	p, err := b.Dial(ctx, g.Name(7))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx, p, "mine", 16)
	if err != nil {
		t.Fatal(err)
	}
	for i := range uint64(100) {
		if n, err := w.Add(ctx, 1); n != i+1 || err != nil {
			t.Fatalf("%d, %v", n, err)
		}
	}
	if n := mem.Bytes()[4096+16*8]; n != 100 {
		t.Errorf("the guest sees %d", n)
	}
	rr, err := p.Lookup(ctx, "mine")
	if err != nil || rr.Incarnation != r.Incarnation() || rr.Size != 4096 {
		t.Errorf("%+v, %v; want incarnation %d", rr, err, r.Incarnation())
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Add(ctx, 1); err == nil {
		t.Error("an operation on a region that was withdrawn")
	}
	if err := mem.Close(); err != nil {
		t.Error(err)
	}
}

// A guest survives its host: it says what it knows of each operation, attaches to the
// next host, keeps its peers, and its region is served with the incarnation that it had.
func TestGuestOutlivesHost(t *testing.T) {
	a, b, region := pipeWithRegion(t, 4096)
	redial, leave := successive(a)
	g := guestBy(t, redial, fi.DomainAttr{}, redial)
	mem, err := mr.Memfd("guest", 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	r, err := g.Register(mem, mr.Options{Name: "mine", Access: mr.RemoteRead | mr.RemoteWrite})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	touched, err := g.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	through, err := g.NewCounter()
	if err != nil {
		t.Fatal(err)
	}
	ep, err := g.NewEndpoint(fi.EndpointAttr{Number: 9})
	if err == nil {
		err = errors.Join(g.BindRegion(r, touched, fi.BindRemoteRead), ep.Bind(through, fi.BindRemoteRead), ep.Enable())
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	back, err := b.Dial(ctx, g.Name(9))
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := xdpfab.Word[uint64](ctx, back, "mine", 0)
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Dial(ctx, b.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](ctx, p, "words", 0)
	if err != nil {
		t.Fatal(err)
	}
	looked := make(chan struct{})
	looking, look := context.WithCancel(ctx)
	go func() { // another goroutine that asks what the hosts say
		defer close(looked)
		for looking.Err() == nil {
			_ = g.Interface()
		}
	}()
	defer func() { look(); <-looked }()
	var ran, unknown uint64
	for round := range 5 {
		for range 50 {
			switch _, err := w.Add(ctx, 1); {
			case err == nil:
				ran++
			case errors.Is(err, fi.ErrOutcomeUnknown):
				unknown++
			case !errors.Is(err, fi.ErrNotExecuted):
				t.Fatalf("neither executed nor unknown nor not executed: %v", err)
			}
		}
		for { // the former host may be about to end
			_, err := theirs.Add(ctx, 1)
			if err == nil {
				if n := uint64(round + 1); touched.Read() < n || through.Read() < n {
					t.Errorf("%d and %d operations of peers are counted, but %d have succeeded", touched.Read(), through.Read(), n)
				}
				break
			} else if errors.Is(err, fi.ErrNoKey) || errors.Is(err, fi.ErrNoRegion) || ctx.Err() != nil {
				t.Fatalf("round %d: the guest's region: %v", round, err)
			}
		}
		go leave() // the host has gone, as far as the guest can tell
		for {
			if _, err := w.Add(ctx, 1); err == nil {
				ran++
				break
			} else if !errors.Is(err, fi.ErrHostLost) {
				t.Fatal(err)
			} else if errors.Is(err, fi.ErrOutcomeUnknown) {
				unknown++
			}
		}
	}
	word, err := region.Uint64(0)
	if err != nil {
		t.Fatal(err)
	}
	if n := word.Load(); n < ran || n > ran+unknown {
		t.Errorf("%d, want %d, and at most %d unknown ones", n, ran, unknown)
	}
}

// The host notices the end of a guest also while it answers many calls of the guest's:
// here, for peers that cannot be reached.
func TestGuestEndsAmidCalls(t *testing.T) {
	pa, _ := port.NewMemoryPair(node.PipeMTU, 1)
	f, err := fi.NewFabric(fi.DomainAttr{})
	if err != nil {
		t.Fatal(err)
	}
	d, err := f.Adopt(deafDevice{&node.PipeEnd{Port: pa}})
	if err != nil {
		t.Fatal(err)
	}
	defer d.CloseAll()
	talk, err := hostingOf(t, &xdpfab.Domain{Domain: d})(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := guestpkg.Attach(t.Context(), talk, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.WaitGroup
	for range 100 {
		calls.Go(func() {
			if _, err := dev.Link(t.Context(), wire.Addr{MAC: wire.MAC{2, 0, 0, 0, 0, 9}}); err == nil {
				t.Error("found a way where there is none")
			}
		})
	}
	dev.Talk.End()
	calls.Wait()
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}

// Calls that come side by side find no endpoint that is half made or half closed.
func TestGuestCallsSideBySide(t *testing.T) {
	_, b, _ := pipeWithRegion(t, 64)
	talk, err := hostingOf(t, b)(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	dev, err := guestpkg.Attach(t.Context(), talk, "test", nil)
	if err != nil {
		t.Fatal(err)
	}
	dev.Patience = 10 * testnet.Patience // no verdict on how fast the machine is
	const number = 77
	var calls sync.WaitGroup
	for i := range 200 {
		for verb, args := range map[string]any{
			share.CallEndpoint: share.Endpoint{Number: number, Origin: uint64(i + 1)},
			share.CallPeer:     share.Peer{Origin: uint64(i + 1), Addr: share.Addr{MAC: wire.MAC{2, 0, 0, 0, 0, 1}}},
			share.CallDrop:     uint64(i + 1),
		} {
			calls.Go(func() {
				if err := dev.Call(t.Context(), verb, args, nil); errors.Is(err, fi.ErrHostLost) {
					t.Errorf("%s: %v", verb, err)
				}
			})
		}
	}
	calls.Wait()
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}
