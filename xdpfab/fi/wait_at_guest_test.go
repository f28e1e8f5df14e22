// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"testing"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// waitingAt returns how many operations wait at a guest, as its daemon knows it.
func waitingAt(daemon *xdpfab.Domain) (n int) {
	daemon.Hosting().EachGuestRegion(func(_ int, r *mr.Region) {
		if q, is := r.Queues().(interface{ Len() int }); is {
			n += q.Len()
		}
	})
	return n
}

// atGuest is a gate in the memory of a guest, which another domain waits at.
func atGuest(t *testing.T, guest, peer *xdpfab.Domain) (*gate, xdpfab.Remote[uint64]) {
	t.Helper()
	x := newGate(t, nil, guest)
	ep, err := guest.NewEndpoint(fi.EndpointAttr{Number: 5})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := peer.Dial(ctx(t), guest.Name(5))
	if err != nil {
		t.Fatal(err)
	}
	return x, wordOf(t, p, "gate")
}

// untilWaiting returns once so many operations wait at the guest.
func untilWaiting(t *testing.T, daemon *xdpfab.Domain, n int) {
	t.Helper()
	testnet.Eventually(t, "operations wait", func() bool { return waitingAt(daemon) == n })
}

// Operations wait in the memory of a program behind a daemon: for changes of peers, and
// for those of the program itself, which need no word to the daemon.
func TestWaitAtGuest(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	g := guestOf(t, a, fi.DomainAttr{})
	x, w := atGuest(t, g, b)
	one, two := x.enter(t.Context(), w, 1), (<-chan error)(nil)
	untilWaiting(t, a, 1)
	two = x.enter(t.Context(), w, 2)
	untilWaiting(t, a, 2)
	x.word.Store(0) // the daemon is not told
	x.passes(one, 1)
	if err := w.Store(ctx(t), 0); err != nil {
		t.Fatal(err)
	}
	x.passes(two, 2)
	untilWaiting(t, a, 0)
}

// The end of the program, and of its region, ends what waits there, for certain.
func TestWaitAtGuestEnds(t *testing.T) {
	for name, end := range map[string]func(x *gate, g *xdpfab.Domain) error{
		"dies": func(_ *gate, g *xdpfab.Domain) error {
			g.Node().Dev.(*guestpkg.Attached).EndTalk()
			return nil
		},
		"closes the region": func(x *gate, _ *xdpfab.Domain) error { return x.region.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := pipeWithRegion(t, 4096)
			g := guestOf(t, a, fi.DomainAttr{})
			x, w := atGuest(t, g, b)
			lost := x.enter(t.Context(), w, 1)
			untilWaiting(t, a, 1)
			if err := end(x, g); err != nil {
				t.Fatal(err)
			}
			if err := <-lost; err == nil || x.word.Load() != 99 {
				t.Errorf("%v, and %d is inside", err, x.word.Load())
			}
			untilWaiting(t, a, 0)
		})
	}
}

// A takeover of the program's daemon ends what waits, for certain, and it can wait again.
func TestTakeoverEndsWaitsAtGuests(t *testing.T) {
	s, b := newSuccession(t)
	x, w := atGuest(t, guestBy(t, s.connect, fi.DomainAttr{}, nil), b)
	for round := range uint64(2) {
		x.word.Store(99)
		end := x.enter(t.Context(), w, 1)
		untilWaiting(t, s.dom, 1)
		s.next()
		if err := <-end; !errors.Is(err, fi.ErrNotExecuted) {
			t.Errorf("%v, want %v", err, fi.ErrNotExecuted)
		}
		end = x.enter(t.Context(), w, 2+round)
		untilWaiting(t, s.dom, 1)
		x.word.Store(0)
		x.passes(end, 2+round)
	}
}
