// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"fmt"
	goatomic "sync/atomic"
	"testing"
	"time"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// gate is a word of a domain, for which guests of the domain at the other end of a pipe
// wait to be 0.
type gate struct {
	t      *testing.T
	a, b   *xdpfab.Domain
	region *mr.Region
	word   *goatomic.Uint64
}

func newGate(t *testing.T, a, b *xdpfab.Domain) *gate {
	t.Helper()
	x := &gate{t: t, a: a, b: b}
	var err error
	if x.region, err = b.NewRegion("gate", 4096); err == nil {
		x.word, err = x.region.Uint64(0)
	}
	if err != nil {
		t.Fatal(err)
	}
	x.word.Store(99)
	return x
}

// seenBy is the word as a domain at the other end has it.
func (x *gate) seenBy(g *xdpfab.Domain) xdpfab.Remote[uint64] {
	x.t.Helper()
	p, err := g.Dial(ctx(x.t), x.b.Name(0))
	if err != nil {
		x.t.Fatal(err)
	}
	return wordOf(x.t, p, "gate")
}

// enter has a domain wait until the word is 0, and set it to id.
func (x *gate) enter(ctx context.Context, w xdpfab.Remote[uint64], id uint64) <-chan error {
	end := make(chan error, 1)
	go func() { end <- w.WaitCompareAndSwap(ctx, 0, id) }()
	return end
}

// waits returns once so many operations wait.
func (x *gate) waits(n int) {
	x.t.Helper()
	testnet.Eventually(x.t, fmt.Sprintf("%d operations wait", n), func() bool {
		q, is := x.region.Queues().(interface{ Len() int })
		return (is && q.Len() == n) || !is && n == 0
	})
}

// open changes the word to 0, as its owner does.
func (x *gate) open() {
	x.word.Store(0)
	x.region.Changed()
}

// passes expects that one has passed, and is inside.
func (x *gate) passes(end <-chan error, id uint64) {
	x.t.Helper()
	if err := <-end; err != nil || x.word.Load() != id {
		x.t.Errorf("%v, and %d is inside: want %d", err, x.word.Load(), id)
	}
}

// Guests of a daemon wait at a peer for a word, and get it in the order in which they
// came. The end of a context ends the wait, for certain.
func TestGuestWaits(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	x := newGate(t, a, b)
	first, second := x.seenBy(guestOf(t, a, fi.DomainAttr{})), x.seenBy(guestOf(t, a, fi.DomainAttr{}))
	one := x.enter(t.Context(), first, 1)
	x.waits(1)
	two := x.enter(t.Context(), second, 2)
	x.waits(2)
	leaving, leave := context.WithCancel(t.Context())
	three := x.enter(leaving, first, 3)
	x.waits(3)
	leave()
	if err := <-three; !errors.Is(err, fi.ErrNotExecuted) || !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	x.waits(2)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := <-x.enter(short, second, 4); !errors.Is(err, fi.ErrNotExecuted) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("deadline: %v", err)
	}
	x.open()
	x.passes(one, 1)
	if err := first.Store(t.Context(), 0); err != nil { // it hands over itself
		t.Fatal(err)
	}
	x.passes(two, 2)
	x.waits(0)
}

// A guest has 64 operations that wait at most, in all its sessions together, and leaves
// the room of others alone.
func TestGuestWaitingRoom(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	x := newGate(t, a, b)
	g := guestOf(t, a, fi.DomainAttr{})
	greedy, other := x.seenBy(g), x.seenBy(guestOf(t, a, fi.DomainAttr{}))
	until, leave := context.WithCancel(t.Context())
	var all []<-chan error
	for i := range uint64(64) {
		all = append(all, x.enter(until, greedy, 100+i))
	}
	x.waits(64)
	ep, err := b.NewEndpoint(fi.EndpointAttr{Number: 5})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := g.Dial(ctx(t), b.Name(5))
	if err != nil {
		t.Fatal(err)
	}
	if err := wordOf(t, p, "gate").WaitCompareAndSwap(ctx(t), 0, 7); !errors.Is(err, fi.ErrNotExecuted) || !errors.Is(err, fi.ErrBusy) {
		t.Errorf("%v, want %v", err, fi.ErrBusy)
	}
	all = append(all, x.enter(until, other, 8))
	x.waits(65)
	leave()
	for _, end := range all {
		if err := <-end; !errors.Is(err, fi.ErrNotExecuted) {
			t.Error(err)
		}
	}
	x.waits(0)
}

// A guest that dies, or whose domain is closed, leaves its place to those behind it.
func TestGuestDiesWhileItWaits(t *testing.T) {
	for name, end := range map[string]func(g *xdpfab.Domain){
		"dies":   func(g *xdpfab.Domain) { g.Node().Dev.(*guestpkg.Attached).EndTalk() },
		"closes": func(g *xdpfab.Domain) { go func() { _ = g.CloseAll() }() },
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _ := pipeWithRegion(t, 4096)
			x := newGate(t, a, b)
			g := guestOf(t, a, fi.DomainAttr{})
			lost := x.enter(t.Context(), x.seenBy(g), 1)
			x.waits(1)
			next := x.enter(t.Context(), x.seenBy(guestOf(t, a, fi.DomainAttr{})), 2)
			x.waits(2)
			end(g)
			if err := <-lost; err == nil {
				t.Error("it is said to have passed")
			}
			x.waits(1)
			x.open()
			x.passes(next, 2)
		})
	}
}

// What waits when the daemon ends is unknown, and never runs; at the next daemon the
// guest can wait again.
func TestGuestWaitsAtNextHost(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	x := newGate(t, a, b)
	dial, leave := successive(a)
	w := x.seenBy(guestBy(t, dial, fi.DomainAttr{}, dial))
	end := x.enter(t.Context(), w, 1)
	x.waits(1)
	leave()
	if err := <-end; !errors.Is(err, fi.ErrOutcomeUnknown) || !errors.Is(err, fi.ErrHostLost) {
		t.Errorf("%v, want %v and %v", err, fi.ErrOutcomeUnknown, fi.ErrHostLost)
	}
	x.waits(0)
	testnet.Eventually(t, "the next daemon", func() bool { _, err := w.Load(ctx(t)); return err == nil })
	end = x.enter(t.Context(), w, 2)
	x.waits(1)
	x.open()
	x.passes(end, 2)
}

// A daemon that another one takes the place of ends what waits, for certain: that does
// not hold up the takeover, and with the next daemon the guest can wait again.
func TestTakeoverEndsWaitsOfGuests(t *testing.T) {
	s, b := newSuccession(t)
	x := newGate(t, s.dom, b)
	w := x.seenBy(guestBy(t, s.connect, fi.DomainAttr{}, nil))
	for round := range uint64(3) {
		x.word.Store(99)
		end := x.enter(t.Context(), w, 1)
		x.waits(1)
		s.next()
		if err := <-end; !errors.Is(err, fi.ErrNotExecuted) || !errors.Is(err, fi.ErrHostLost) {
			t.Errorf("%v, want %v and %v", err, fi.ErrNotExecuted, fi.ErrHostLost)
		}
		x.waits(0)
		end = x.enter(t.Context(), w, 2+round)
		x.waits(1)
		x.open()
		x.passes(end, 2+round)
	}
}

// A guest waits from a thread that drives its own domain, too.
func TestGuestWaitsManually(t *testing.T) {
	a, b, _ := pipeWithRegion(t, 4096)
	x := newGate(t, a, b)
	w := x.seenBy(guestOf(t, a, fi.DomainAttr{Progress: fi.ProgressManual}))
	end := x.enter(t.Context(), w, 1)
	x.waits(1)
	x.open()
	x.passes(end, 1)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := <-x.enter(short, w, 2); !errors.Is(err, fi.ErrNotExecuted) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	x.waits(0)
}
