// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

func setUp(t testing.TB, side *testnet.Side, up bool) {
	t.Helper()
	configure(t, side, func(h *netlink.Handle, l netlink.Link) error {
		if up {
			return h.LinkSetUp(l)
		}
		return h.LinkSetDown(l)
	})
}

// quiet checks that a queue whose interface is unusable sleeps in Wait: a busy
// machine cannot shorten the least time that it sleeps.
func quiet(t testing.TB, q *Queue) {
	t.Helper()
	const waits = 10
	start := time.Now()
	for range waits {
		q.Wait(20 * time.Millisecond)
		if n := q.Receive(make([][]byte, 4)); n != 0 {
			t.Fatalf("%d packets from an interface out of use", n)
		}
	}
	if took := time.Since(start); took < waits*stallRetry {
		t.Errorf("%d waits of 20 ms took %v: this spins", waits, took)
	}
}

// lasts checks that a wait which nothing ends lasts its time. A signal ends some of them
// early, as does a wake-up that was still on its way, but not all of a hundred.
func lasts(t testing.TB, wait func(time.Duration)) {
	t.Helper()
	const whole = 20 * time.Millisecond
	for range 100 {
		start := time.Now()
		if wait(whole); time.Since(start) >= whole {
			return
		}
	}
	t.Errorf("100 waits of %v ended early: something keeps waking them", whole)
}

func TestWaitTimesOut(t *testing.T) {
	a, _ := openPair(t, testnet.Options{}, Options{RingSize: 32})
	lasts(t, a.Queues()[0].Wait)
	a.Queues()[0].Wait(0)
	a.Queues()[0].Wait(-1) // returns
}

// long outlasts the test binary: a Wait with it returns only when it is woken.
const long = time.Hour

func TestWakeEndsWait(t *testing.T) {
	a, b := openPair(t, testnet.Options{}, Options{RingSize: 32})
	q := a.Queues()[0]
	q.Wake()
	q.Wake()
	q.Wait(long) // a wake-up before the wait is not lost
	q.Wait(time.Millisecond)
	if q.event.IsSet() {
		t.Error("two wake-ups ended two waits")
	}
	for range 200 { // a wake-up during the wait, at any moment of it
		go q.Wake()
		q.Wait(long)
	}
	// A packet ends a wait, too.
	s, qb, sent := newStream(t, b, a, wire.Ethernet, 0), b.Queues()[0], make(chan error)
	go func() {
		qb.Send(s.put(qb.Buffer(), 0))
		sent <- qb.Flush()
	}()
	q.Wait(long)
	q.Wait(long) // it is still there
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if got := s.receive(t, q); len(got) != 1 {
		t.Errorf("%d packets after Wait", len(got))
	}
}

// Many goroutines wake, one waits: each wake-up is seen by the flag that it
// raised.
func TestWakeStorm(t *testing.T) {
	a, _ := openPair(t, testnet.Options{}, Options{RingSize: 32})
	q := a.Queues()[0]
	const wakers, rounds = 4, 10000
	var wg sync.WaitGroup
	posted, taken := make(chan struct{}, wakers*rounds), 0
	for range wakers {
		wg.Go(func() {
			for range rounds {
				posted <- struct{}{}
				q.Wake()
			}
		})
	}
	for taken < wakers*rounds {
		select {
		case <-posted:
			taken++
		default:
			q.Wait(long) // hangs if a wake-up gets lost
		}
	}
	wg.Wait()
	lasts(t, q.Wait) // the eventfd was emptied
}

func TestWakeAfterClose(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	n, err := tryOpen(p.A, Options{RingSize: 32})
	if err != nil {
		t.Fatal(err)
	}
	q := n.Queues()[0]
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				q.Wake()
			}
		})
	}
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	// A closed queue is empty and harmless.
	if q.Receive(make([][]byte, 4)) != 0 || q.Buffer() != nil {
		t.Error("a closed queue gave out packets")
	}
	q.Release()
	q.Wait(time.Millisecond)
	if err := n.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := n.Counters(); !errors.Is(err, ErrClosed) {
		t.Errorf("Counters after Close: %v", err)
	}
}

func TestInterfaceRemoved(t *testing.T) {
	p := testnet.NewVeth(t, testnet.Options{}) // a NIC cannot be removed
	a, b := open(t, p.A, Options{UDP: true, RingSize: 32}), open(t, p.B, Options{UDP: true, RingSize: 32})
	s, qa := newStream(t, a, b, wire.Ethernet, 0), a.Queues()[0]
	s.run(t, qa, b.Queues()[0], 50, 8)
	configure(t, a.side, func(h *netlink.Handle, l netlink.Link) error { return h.LinkDel(l) })
	for range 40 {
		if p := qa.Buffer(); p != nil {
			qa.Send(s.put(p, 0))
		}
	}
	for range 3 {
		if err := qa.Flush(); !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.ENETDOWN) {
			t.Fatalf("Flush after removal: %v, want ENXIO or ENETDOWN", err)
		}
		quiet(t, qa)
	}
	go qa.Wake()
	qa.Wait(long)
	if _, err := a.Counters(); err != nil {
		t.Errorf("counters: %v", err)
	}
	if _, err := a.Link(t.Context(), wire.Addr{IP: b.side.IP4}); err == nil {
		t.Error("a removed interface leads somewhere")
	}
	if err := a.Close(); err != nil { // the test's cleanup closes again
		t.Error(err)
	}
}

// A wait for any queue ends with a wake-up or a packet of each, at any moment, and
// otherwise lasts its time, also while the interface is down.
func TestWaitAny(t *testing.T) {
	const queues = 3
	a, b := openPair(t, testnet.Options{Queues: queues, Straight: true}, Options{RingSize: 32})
	for _, q := range a.Queues() {
		q.Wake()
		a.WaitAny(long) // a wake-up before the wait is not lost
		for range 100 {
			go q.Wake()
			a.WaitAny(long)
		}
	}
	lasts(t, a.WaitAny) // every wake-up was consumed
	for at := range queues {
		s, from, sent := newStream(t, b, a, wire.Ethernet, at), b.Queues()[at], make(chan error)
		go func() {
			from.Send(s.put(from.Buffer(), 0))
			sent <- from.Flush()
		}()
		a.WaitAny(long)
		a.WaitAny(long) // it is still there
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
		if got := s.receive(t, a.Queues()[at]); len(got) != 1 {
			t.Errorf("%d packets on queue %d", len(got), at)
		}
	}
	lasts(t, a.WaitAny)
}
