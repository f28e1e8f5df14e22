// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// relet is a host with the last of its queues to lend, that one after another takes over.
type relet struct {
	*succession
	*lending
	queue int
}

// newRelet opens it on three queues, or two of a NIC, and a peer that dials by its first
// queue or its last.
func newRelet(t *testing.T, byLast bool) *relet {
	t.Helper()
	return newReletOf(t, byLast, 0)
}

// newReletOf is newRelet at an MTU; 0 for the usual one.
func newReletOf(t *testing.T, byLast bool, mtu int) *relet {
	t.Helper()
	testnet.Require(t)
	if _, v := testnet.Kernel(t); !v.AtLeast(kernel.AdoptRings) {
		t.Skip("no queues can be lent")
	}
	queues := 3
	if testnet.Granted(t).Queues < queues {
		queues = 2
	}
	l := &lending{t: t, pair: testnet.NewPair(t, testnet.Options{Queues: queues, MTU: mtu})}
	l.steered = byLast && testnet.Steer(t, l.pair.A, queues-1)
	attr := fi.DomainAttr{Attach: fi.AttachNever, Lend: 1}
	first := l.open(l.pair.A, attr)
	l.peer = l.open(l.pair.B, fi.DomainAttr{Attach: fi.AttachNever})
	for range queues - 1 {
		if byLast {
			l.endpoint(l.peer, fi.AnyNumber)
		}
	}
	if _, err := l.peer.DialEndpoint(); err != nil {
		t.Fatal(err)
	}
	l.serve(l.peer, 0, "peer")
	s := succeed(t, first)
	s.side, s.attr, s.limits = l.pair.A, attr, host.GuestLimits{Queues: 1}
	l.dial = s.connect
	return &relet{s, l, queues - 1}
}

// is waits until the queue is in a state.
func (r *relet) is(state string, lends uint64) {
	r.succession.t.Helper()
	testnet.Eventually(r.succession.t, "the queue is "+state, func() bool {
		all := r.dom.Hosting().LentQueues()
		return len(all) == 1 && all[0].Queue == r.queue && string(all[0].State) == state && all[0].Lends == lends && (all[0].PID != 0) == (state == "lent")
	})
}

// adding adds all the time from one domain to a region of another.
func (r *relet) adding(l *load, from *xdpfab.Domain, to, region string) {
	t := r.succession.t
	t.Helper()
	p, err := from.Dial(t.Context(), to)
	if err != nil {
		t.Fatalf("%s: %v", to, err)
	}
	l.adds(p, region)
}

// A program drives a queue that it has borrowed while one process after another takes
// its host's place: each sum is exact, with the host and with peers, by whichever queue
// their frames arrive. Its queue is lent again when it has ended.
func TestTakeoverBorrowed(t *testing.T) {
	for name, byLast := range map[string]bool{"by the host's queue": false, "by the borrower's": true} {
		t.Run(name, func(t *testing.T) {
			r := newRelet(t, byLast)
			for n := range uint64(2) {
				r.is("free", n)
				g := r.mustBorrow()
				r.serve(g, 7, "mine")
				r.serve(g, 8, "reached by IP")
				l := &load{t: t}
				r.adding(l, r.peer, g.Name(7), "mine")
				r.adding(l, r.peer, r.pair.A.IP4.String()+"/8", "reached by IP")
				if n == 0 { // only one may add there
					r.adding(l, r.peer, r.dom.Name(0), "words")
					r.adding(l, g, r.peer.Name(0), "peer")
				}
				for range 3 {
					l.goOn()
					r.next()
					r.is("lent", n+1)
				}
				l.goOn()
				l.stop.Store(true)
				for _, x := range l.runs {
					<-x.done
				}
				r.numbers(g)
				if s, err := g.Stats(); err != nil || s["xdp_redirect"] == 0 || s["tx_lost"] != 0 {
					t.Errorf("%v, %v", s, err)
				}
				if err := g.CloseAll(); err != nil {
					t.Error(err)
				}
			}
			r.is("free", 2)
			r.count(r.peer, r.dom.Name(0), "words", 5)
		})
	}
}

// numbers checks that the next host knows which numbers the borrower has.
func (r *relet) numbers(g *xdpfab.Domain) {
	t := r.succession.t
	t.Helper()
	if i := r.dom.Hosting().Guests(); len(i) != 1 || i[0].Queue == nil || *i[0].Queue != r.queue || i[0].Endpoints < 2 {
		t.Errorf("%+v", i)
	}
	if _, err := g.NewEndpoint(fi.EndpointAttr{}); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("endpoint 0, which is the host's: %v", err)
	}
	if _, err := r.dom.NewEndpoint(fi.EndpointAttr{Number: 7}); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("endpoint 7, which is the borrower's: %v", err)
	}
	if err := r.endpoint(g, 9).Close(); err != nil {
		t.Error(err)
	}
	if err := r.endpoint(r.dom, 9).Close(); err != nil {
		t.Errorf("endpoint 9, which was the borrower's: %v", err)
	}
}

// Wherever in a takeover the borrower ends, the next host gets the queue back. Nothing is
// left over.
func TestTakeoverBorrowerEnds(t *testing.T) {
	r := newRelet(t, false)
	stages := []func(end func()){
		func(end func()) { r.next(); end() },
		func(end func()) { end(); r.next() },
		func(end func()) { // between the two
			r.by(func(h *host.Handover) { end(); r.dom = r.succession.open(h) })
		},
		func(end func()) {
			r.by(func(h *host.Handover) { r.dom = r.succession.open(h); end() })
		},
	}
	var lends uint64
	var before int
	for lap := range 3 {
		for stage, run := range stages {
			r.is("free", lends)
			g := r.mustBorrow()
			lends++
			r.serve(g, 7, "mine")
			r.count(r.peer, g.Name(7), "mine", 1)
			run(func() {
				if err := g.CloseAll(); err != nil {
					t.Errorf("stage %d: %v", stage, err)
				}
			})
			r.is("free", lends)
			r.count(r.peer, r.dom.Name(0), "words", 1)
		}
		if lap == 0 {
			before = descriptors(t)
		}
	}
	testnet.Eventually(t, fmt.Sprintf("no more than the %d descriptors from before", before), func() bool { return descriptors(t) <= before })
}

func descriptors(t *testing.T) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// by has f open what the present domain hands over.
func (r *relet) by(f func(*host.Handover)) {
	t := r.succession.t
	t.Helper()
	h, err := r.dom.Hosting().HandOver(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	f(h)
	r.dom.Resume()
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// A process that cannot take over, because of its rules or its queues, or that gives up
// at the last moment, leaves the loan to the former one: the borrower drives its queue
// all the while.
func TestTakeoverBorrowedRefused(t *testing.T) {
	if testnet.Borrowed(t) != nil {
		t.Skip("NICs choose the queue that a frame arrives on")
	}
	r := newRelet(t, true)
	g := r.mustBorrow()
	r.serve(g, 7, "mine")
	l := &load{t: t}
	r.adding(l, r.peer, g.Name(7), "mine") // beside the host
	toHost := &load{t: t}
	r.adding(toHost, r.peer, r.dom.Name(0), "words")
	l.goOn()
	toHost.goOn()
	r.by(func(h *host.Handover) {
		limits, attr := r.limits, r.attr
		refused := func(want string) {
			t.Helper()
			if _, err := r.tryOpen(h); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v: want %s", err, want)
			}
			r.limits, r.attr, r.gone = limits, attr, nil
			l.goOn()
		}
		l.goOn()
		r.limits, r.gone = host.GuestLimits{Rule: "rule 9"}, func(error) {} // it would be turned out, if it came to that
		if err := r.succession.open(h).CloseAll(); err != nil {
			t.Error(err)
		}
		r.limits, r.gone = limits, nil
		l.goOn()
		r.attr.Lend = 0
		refused("queue 2 is lent to a program, and is not among those to lend any more, with 3 queues in use and 0 to lend")
		r.attr.Queues = 1
		refused("with 1 queues in use and 1 to lend")
		for range 2 {
			if err := r.succession.open(h).CloseAll(); err != nil {
				t.Error(err)
			}
			l.goOn()
		}
		r.dom = r.succession.open(h)
		l.goOn()
	})
	toHost.goOn()
	r.is("lent", 1)
	for _, x := range []*load{l, toHost} {
		x.stop.Store(true)
		<-x.runs[0].done
	}
	if err := g.CloseAll(); err != nil {
		t.Error(err)
	}
	r.is("free", 1)
}

// A program of an earlier release, which takes each buffer for a packet, gets no queue
// at an MTU whose packets lie in several. The queue stays free, for programs that can.
func TestOldBorrowerOfSegments(t *testing.T) {
	testnet.SkipOnNICs(t, "a veth with an MTU of 9000")
	if _, v := testnet.Kernel(t); !v.AtLeast(kernel.MultiBuffer) {
		t.Skipf("this kernel has no packets of several buffers; it takes %v", kernel.MultiBuffer)
	}
	r := newReletOf(t, false, 9000)
	talk, err := r.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer talk.Close()
	_, fds, err := guestpkg.Ask(t.Context(), talk, share.CallBorrow, share.Borrow{Version: share.Version})
	if share.CloseAll(fds); err == nil || !strings.Contains(err.Error(), "too old") || len(fds) != 0 {
		t.Errorf("%d descriptors, %v", len(fds), err)
	}
	r.is("free", 1)
	r.serve(r.mustBorrow(), 7, "mine")
	r.is("lent", 2)
}

// A queue that was given back, and that some program has open still, is no obstacle.
func TestTakeoverKeptQueue(t *testing.T) {
	r := newRelet(t, false)
	talk, err := r.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, fds, err := guestpkg.Ask(t.Context(), talk, share.CallBorrow, share.Borrow{Version: share.Version})
	if err != nil || len(fds) != 4 {
		t.Fatalf("%d descriptors, %v", len(fds), err)
	}
	kept := fds[0]
	share.CloseAll(fds[1:])
	if err := talk.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.is("kept", 1)
		r.next()
		r.count(r.peer, r.dom.Name(0), "words", 1)
	}
	r.is("kept", 1)
	if _, err := r.borrow(fi.DomainAttr{}); !errors.Is(err, fi.ErrBusy) {
		t.Errorf("while it is open elsewhere: %v", err)
	}
	if err := unix.Close(kept); err != nil {
		t.Fatal(err)
	}
	r.is("free", 1)
	r.serve(r.mustBorrow(), 7, "mine")
	if !slices.ContainsFunc(r.dom.Hosting().LentQueues(), func(q host.LentQueue) bool { return q.State == "lent" }) {
		t.Error("it is not lent")
	}
}
