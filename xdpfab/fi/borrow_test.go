// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// lending is a host with a queue to lend, and a peer that uses all queues.
type lending struct {
	t          *testing.T
	pair       *testnet.Pair
	host, peer *xdpfab.Domain
	dial       func(context.Context) (*share.Talk, error)
	steered    bool // what arrives over IP arrives at the queue to lend, if the peer likes
}

// newLending opens both. The peer dials by its queue that has the given number.
func newLending(t *testing.T, dialer int, limits host.GuestLimits) *lending {
	t.Helper()
	testnet.Require(t)
	if _, v := testnet.Kernel(t); !v.AtLeast(kernel.AdoptRings) {
		t.Skip("no queues can be lent")
	}
	l := &lending{t: t, pair: testnet.NewPair(t, testnet.Options{Queues: 2})}
	l.steered = testnet.Steer(t, l.pair.A, 1)
	l.host = l.open(l.pair.A, fi.DomainAttr{Attach: fi.AttachNever, Lend: 1})
	l.peer = l.open(l.pair.B, fi.DomainAttr{Attach: fi.AttachNever})
	for range dialer {
		l.endpoint(l.peer, fi.AnyNumber)
	}
	if _, err := l.peer.DialEndpoint(); err != nil {
		t.Fatal(err)
	}
	l.serve(l.host, 0, "host")
	l.serve(l.peer, 0, "peer")
	l.dial = hostingOf(t, l.host, limits)
	return l
}

func (l *lending) open(s *testnet.Side, attr fi.DomainAttr) *xdpfab.Domain {
	l.t.Helper()
	return openWhole(l.t, s, attr)
}

// Borrowing returns a domain on a borrowed queue and a peer of it, for the tests outside
// the package.
func Borrowing(t *testing.T, attr fi.DomainAttr) (g, peer *xdpfab.Domain, pair *testnet.Pair) {
	t.Helper()
	l := newLending(t, 1, host.GuestLimits{Queues: 1})
	g, err := l.borrow(attr)
	if err != nil {
		t.Fatal(err)
	}
	return g, l.peer, l.pair
}

// borrow opens a domain on a borrowed queue.
func (l *lending) borrow(attr fi.DomainAttr) (*xdpfab.Domain, error) {
	talk, err := l.dial(l.t.Context())
	if err != nil {
		return nil, err
	}
	dev, err := guestpkg.Borrow(l.t.Context(), talk, "test")
	if err != nil {
		return nil, err
	}
	f, err := fi.NewFabric(attr)
	if err != nil {
		return nil, err
	}
	d, err := f.Adopt(dev)
	if err == nil {
		l.t.Cleanup(func() {
			if err := d.CloseAll(); err != nil {
				l.t.Error(err)
			}
		})
	}
	return &xdpfab.Domain{Domain: d}, err
}

func (l *lending) mustBorrow() *xdpfab.Domain {
	l.t.Helper()
	d, err := l.borrow(fi.DomainAttr{})
	if err != nil {
		l.t.Fatal(err)
	}
	return d
}

// endpoint makes an endpoint that peers can dial.
func (l *lending) endpoint(d *xdpfab.Domain, number int) *fi.Endpoint {
	l.t.Helper()
	ep, err := d.NewEndpoint(fi.EndpointAttr{Number: number})
	if err == nil {
		err = ep.Enable()
	}
	if err != nil {
		l.t.Fatal(err)
	}
	return ep
}

// serve gives a domain an endpoint and a region.
func (l *lending) serve(d *xdpfab.Domain, number int, region string) {
	l.t.Helper()
	l.endpoint(d, number)
	if _, err := d.NewRegion(region, 4096); err != nil {
		l.t.Fatal(err)
	}
}

// count adds to a word of another domain, each time by one.
func (l *lending) count(from *xdpfab.Domain, to, region string, times int) {
	l.t.Helper()
	p, err := from.Dial(l.t.Context(), to)
	if err != nil {
		l.t.Fatalf("%s: %v", to, err)
	}
	w, err := xdpfab.Word[uint64](l.t.Context(), p, region, 0)
	if err != nil {
		l.t.Fatalf("%s: %v", to, err)
	}
	before, err := w.Load(l.t.Context())
	for i := range uint64(times) {
		var n uint64
		if n, err = w.Add(l.t.Context(), 1); err != nil || n != before+i+1 {
			l.t.Fatalf("%s: %d, %v: want %d", to, n, err, before+i+1)
		}
	}
	if err := errors.Join(err, p.Close()); err != nil {
		l.t.Fatal(err)
	}
}

// message sends one from a domain to another.
func (l *lending) message(from, to *xdpfab.Domain) {
	l.t.Helper()
	box, err := to.NewMailbox(xdpfab.MailboxAttr{Number: fi.AnyNumber})
	if err != nil {
		l.t.Fatal(err)
	}
	p, err := from.Dial(l.t.Context(), box.Name())
	if err != nil {
		l.t.Fatal(err)
	}
	if err := p.Send(l.t.Context(), []byte("hello")); err != nil {
		l.t.Fatal(err)
	}
	m, err := box.Receive(l.t.Context(), make([]byte, 100))
	if err != nil || string(m.Bytes) != "hello" {
		l.t.Errorf("%q, %v", m.Bytes, err)
	}
	if err := errors.Join(p.Close(), box.Close()); err != nil {
		l.t.Error(err)
	}
}

// free waits until the queue can be lent.
func (l *lending) free(lends uint64) {
	l.t.Helper()
	testnet.Eventually(l.t, "the queue is free", func() bool {
		return slices.Equal(l.host.Hosting().LentQueues(), []host.LentQueue{{Queue: 1, State: "free", Lends: lends}})
	})
}

// A domain on a borrowed queue does what any other does, with the host, with itself and
// with peers, whatever queue these use; and so does the host meanwhile, and afterwards.
func TestBorrow(t *testing.T) {
	for dialer := range 2 {
		t.Run(fmt.Sprintf("peer's queue %d", dialer), func(t *testing.T) {
			l := newLending(t, dialer, host.GuestLimits{Queues: 1})
			all := func(g *xdpfab.Domain) {
				t.Helper()
				l.count(l.peer, l.host.Name(0), "host", 5)
				l.count(l.host, l.peer.Name(0), "peer", 5)
				if g == nil {
					return
				}
				for _, d := range []*xdpfab.Domain{l.peer, l.host, g} {
					l.count(d, g.Name(7), "mine", 5)
				}
				for _, to := range []string{l.peer.Name(0), l.pair.B.IP4.String(), l.pair.B.IP6.String()} {
					l.count(g, to, "peer", 5)
				}
				l.count(l.peer, l.pair.A.IP4.String()+"/7", "mine", 5)
				l.count(g, l.host.Name(0), "host", 5)
			}
			all(nil)
			for n := range uint64(2) {
				l.free(n)
				g := l.mustBorrow()
				if i := g.Interface(); !i.Lent || i.Daemon != "test" || i.Name != l.pair.A.IfName || i.Queues != 1 || i.MTU != 1500 {
					t.Errorf("%+v", i)
				}
				if q := l.host.Hosting().LentQueues(); q[0].State != "lent" || q[0].PID == 0 {
					t.Errorf("%+v", q)
				}
				l.serve(g, 7, "mine")
				if n > 0 { // it is a queue like the first time
					l.count(g, l.pair.B.IP4.String(), "peer", 5)
				} else {
					all(g)
					l.message(l.peer, g)
					l.message(g, l.peer)
					l.message(l.host, g)
				}
				s, err := g.Stats()
				if arrived := s["packets_received"] != 0 && s["xdp_redirect"] != 0; err != nil || l.steered && !arrived || s["tx_lost"] != 0 {
					t.Errorf("%v, %v", s, err)
				}
				if i := l.host.Hosting().Guests(); len(i) != 1 || i[0].Queue == nil || *i[0].Queue != 1 || i[0].Endpoints == 0 {
					t.Errorf("%+v", i)
				}
				if err := g.CloseAll(); err != nil {
					t.Fatal(err)
				}
			}
			l.free(2)
			all(nil)
		})
	}
}

// Numbers of endpoints are the host's to give: no two programs have the same.
func TestBorrowNumbers(t *testing.T) {
	l := newLending(t, 0, host.GuestLimits{Queues: 1, Endpoints: 5})
	g := l.mustBorrow()
	taken := func(d *xdpfab.Domain, number int) {
		t.Helper()
		if _, err := d.NewEndpoint(fi.EndpointAttr{Number: number}); !errors.Is(err, fi.ErrBusy) {
			t.Errorf("endpoint %d: %v", number, err)
		}
	}
	taken(g, 0)
	seven := l.endpoint(g, 7)
	taken(g, 7)
	taken(l.host, 7)
	any := l.endpoint(g, fi.AnyNumber)
	if n := any.Number(); n == 0 || n == 7 {
		t.Errorf("any: %d", n)
	}
	taken(l.host, int(any.Number()))
	top, err := g.NewEndpoint(fi.EndpointAttr{Number: fi.AnyNumber, InitiateOnly: true})
	if err != nil || top.Number() != 0xffff {
		t.Errorf("the highest: %d, %v", top.Number(), err)
	}
	taken(l.host, 0xffff)
	s, err := g.NewScalableEndpoint(fi.ScalableAttr{Number: 20, RXContexts: 2, TXContexts: 1})
	if err != nil {
		t.Fatal(err)
	}
	taken(l.host, 21)
	if _, err := g.NewEndpoint(fi.EndpointAttr{}); !errors.Is(err, fi.ErrDenied) {
		t.Errorf("a sixth endpoint: %v", err)
	}
	if err := errors.Join(s.Close(), seven.Close()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{7, 20, 21} {
		if err := l.endpoint(l.host, n).Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := g.NewPassiveEndpoint(fi.PassiveAttr{Number: 7}); err != nil {
		t.Error(err)
	}
	taken(l.host, 7)
}

// The rules decide who may borrow, and a queue is lent once at a time.
func TestBorrowRefused(t *testing.T) {
	refused := func(l *lending, is error, texts ...string) {
		t.Helper()
		_, err := l.borrow(fi.DomainAttr{})
		if !errors.Is(err, is) {
			t.Fatalf("%v: want %v", err, is)
		}
		for _, text := range texts {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%q does not say %q", err, text)
			}
		}
	}
	pipe, far, err := xdpfab.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(pipe.CloseAll(), far.CloseAll()) })
	refused(&lending{t: t, dial: hostingOf(t, pipe, host.GuestLimits{Rule: "rule x"})}, fi.ErrDenied, "rule x lets this program borrow no queue")
	refused(&lending{t: t, dial: hostingOf(t, pipe, host.GuestLimits{Queues: 1})}, fi.ErrBusy, "the host has no queues to lend")
	l := newLending(t, 0, host.GuestLimits{Queues: 1})
	l.mustBorrow()
	refused(l, fi.ErrDenied, "and they have as many")
	l.dial = hostingOf(t, l.host, host.GuestLimits{Queues: 2})
	refused(l, fi.ErrBusy, "no queue can be lent now", "of 1 queues to lend, 1 are lent")
	for _, a := range []fi.DomainAttr{{Borrow: true, Attach: fi.AttachNever}, {Borrow: true, Lend: 1}, {Lend: -1}} {
		if _, err := fi.NewFabric(a); err == nil {
			t.Errorf("%+v is accepted", a)
		}
	}
}

// A domain on a borrowed queue ends with its host.
func TestBorrowHostEnds(t *testing.T) {
	l := newLending(t, 0, host.GuestLimits{Queues: 1})
	g := l.mustBorrow()
	p, err := g.Dial(t.Context(), l.peer.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[uint64](t.Context(), p, "peer", 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.host.CloseAll(); err != nil {
		t.Fatal(err)
	}
	<-g.Done()
	if err := g.Err(); !errors.Is(err, fi.ErrHostLost) || !errors.Is(err, fi.ErrInterfaceLost) {
		t.Errorf("%v", err)
	}
	if _, err := w.Add(t.Context(), 1); !errors.Is(err, fi.ErrHostLost) {
		t.Errorf("%v", err)
	}
}
