// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// No two programs hold the lock at the same time, and tokens grow, whatever dies.
func TestMutex(t *testing.T) {
	contend(t, 1, func(ctx context.Context, at Place, _ *rand.Rand) (*Held, bool, error) {
		m, err := NewMutex(ctx, at, testLease)
		if err != nil {
			return nil, false, err
		}
		h, err := m.Lock(ctx)
		return h, true, err
	})
}

func newTestMutex(w *world, node int, lease time.Duration) *Mutex {
	w.t.Helper()
	return must(NewMutex(patient(w.t), w.at(node, 0), lease))(w.t)
}

// A holder that is cut off hears of it when its lease is over; then another gets the
// lock.
func TestMutexHolderCutOff(t *testing.T) {
	w := newWorld(t, 2, 1)
	a, b := newTestMutex(w, 1, testLease), newTestMutex(w, 2, testLease)
	ha := must(a.Lock(patient(t)))(t)
	first := ha.Until()
	testnet.Eventually(t, "the lease is renewed", func() bool { return ha.Until().After(first) })
	if err := w.net.Partition(1); err != nil {
		t.Fatal(err)
	}
	hb := must(b.Lock(patient(t)))(t)
	if left := ha.Left(); left > 0 || hb.Token() <= ha.Token() {
		t.Errorf("token %d after %d, whose lease has %v left", hb.Token(), ha.Token(), left)
	}
	<-ha.Context().Done()
	if err := context.Cause(ha.Context()); !errors.Is(err, ErrLost) {
		t.Errorf("the holder hears %v", err)
	}
	if err := ha.Unlock(); !errors.Is(err, ErrLost) {
		t.Errorf("it releases what it lost: %v", err)
	}
	if err := hb.Unlock(); err != nil || !errors.Is(context.Cause(hb.Context()), ErrReleased) {
		t.Errorf("%v, %v", err, context.Cause(hb.Context()))
	}
}

// A release does not wait for a renewal that has no answer: that ends with the context.
func TestReleaseEndsRenewal(t *testing.T) {
	w := newWorld(t, 1, 1)
	m := newTestMutex(w, 1, testLease)
	if err := must(m.Lock(patient(t)))(t).Unlock(); err != nil { // new memory takes a lease
		t.Fatal(err)
	}
	m.lease = time.Hour // so that no other tick comes
	held := must(m.Lock(patient(t)))(t)
	if err := w.net.Partition(1); err != nil {
		t.Fatal(err)
	}
	renewed, released := make(chan struct{}), make(chan error)
	go func() {
		held.tick()
		close(renewed)
	}()
	testnet.Eventually(t, "the renewal is under way", func() bool {
		if held.change.TryLock() {
			held.change.Unlock()
			return false
		}
		return true
	})
	go func() { released <- held.Unlock() }()
	<-renewed
	w.net.Heal()
	if err := <-released; err != nil {
		t.Error(err)
	}
	if v := must(held.memory().at(turnWord).Load(patient(t)))(t); v != held.free {
		t.Errorf("the word is %#x, want %#x", v, held.free)
	}
}

// A restart that keeps the memory takes nothing from the holder; one that loses it does,
// and the next holder waits until the lease of the former one is over.
func TestMutexHomeRestarts(t *testing.T) {
	w := newWorld(t, 2, 1)
	const lease = time.Second
	a, b := newTestMutex(w, 1, lease), newTestMutex(w, 2, lease)
	ha := must(a.Lock(patient(t)))(t)
	w.restart(true)
	if err := ha.Unlock(); err != nil {
		t.Errorf("after a restart with the same memory: %v", err)
	}
	ha = must(a.Lock(patient(t)))(t)
	w.restart(false)
	hb := must(b.Lock(patient(t)))(t)
	if left := ha.Left(); left > 0 || hb.Token() <= ha.Token() {
		t.Errorf("token %d after %d, whose lease has %v left", hb.Token(), ha.Token(), left)
	}
	if err := ha.Unlock(); !errors.Is(err, ErrLost) {
		t.Errorf("the former holder: %v", err)
	}
	if err := hb.Unlock(); err != nil {
		t.Error(err)
	}
}

// A waiter whose context ends costs those behind it nothing, and programs get the lock in
// the order in which they asked.
func TestMutexInOrder(t *testing.T) {
	w := newWorld(t, 1, 1)
	const lease = 30 * time.Second // nothing here may wait for it, but the first
	m := newTestMutex(w, 1, lease)
	words := must(xdpfab.Vector[uint64](patient(t), w.at(1, 0).Home, "parts"))(t)
	if err := words.Store(patient(t), []uint64{ticketWord, turnWord}, []uint64{4, 5 << beatBits}); err != nil {
		t.Fatal(err)
	}
	h := must(m.Lock(patient(t)))(t) // ticket 5
	asked := func(ticket uint64) {
		t.Helper()
		for now := uint64(0); now < ticket; {
			now = must(words.At(ticketWord).Load(patient(t)))(t)
		}
	}
	order := make(chan uint64, 8)
	for ticket := uint64(6); ticket < 12; ticket++ {
		ctx, cancel := context.WithCancel(patient(t))
		go func() {
			if h, err := m.Lock(ctx); err == nil {
				order <- h.Token() - m.epoch
				_ = h.Unlock()
			}
			if ticket%2 == 0 {
				order <- 0
			}
		}()
		asked(ticket)
		if ticket%2 == 0 {
			cancel()
			if got := <-order; got != 0 {
				t.Errorf("ticket %d got the lock", got)
			}
		}
		t.Cleanup(cancel)
	}
	if err := h.Unlock(); err != nil {
		t.Fatal(err)
	}
	for want := uint64(7); want < 12; want += 2 {
		if got := <-order; got != want {
			t.Errorf("ticket %d holds, want %d", got, want)
		}
	}
}

// Those who want a lock wait at its home: sixteen get it one after the other, and
// meanwhile the home executes their releases, and nothing else.
func TestMutexWaitsAtHome(t *testing.T) {
	const nodes, clients = 4, 16
	w := newWorld(t, nodes, 1)
	const lease = 24 * time.Hour // nobody renews it, nor looks whether it is over
	m := newTestMutex(w, 1, lease)
	words := must(xdpfab.Vector[uint64](patient(t), w.at(1, 0).Home, "parts"))(t)
	if err := words.Store(patient(t), []uint64{ticketWord, turnWord}, []uint64{4, 5 << beatBits}); err != nil {
		t.Fatal(err)
	}
	h := must(m.Lock(patient(t)))(t)
	waits := func(n int) {
		t.Helper()
		testnet.Eventually(t, "clients wait at the home", func() bool {
			q, is := w.reg.Queues().(*waiting.Queues)
			return is && q.Len() == n
		})
	}
	got, released := make(chan uint64, clients), make(chan error, clients)
	for i := range clients {
		m := newTestMutex(w, 1+i%nodes, lease)
		go func() {
			h, err := m.Lock(patient(t))
			if err != nil {
				t.Error(err)
				got <- 0
				released <- err
				return
			}
			got <- h.Token() - m.epoch
			released <- h.Unlock()
		}()
		waits(i + 1)
	}
	ops := func() uint64 { return must(w.net.Node(home).Stats())(t)["ops_executed"] }
	before := ops()
	if err := h.Unlock(); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(clients) {
		if x := <-got; x != 6+i {
			t.Errorf("ticket %d got the lock, want %d", x, 6+i)
		}
	}
	for range clients {
		if err := <-released; err != nil {
			t.Error(err)
		}
	}
	if n := ops() - before; n != clients+1 {
		t.Errorf("the home has executed %d operations, want the %d releases", n, clients+1)
	}
}

// At a home where nobody can wait a lock is handed over to those who look again and
// again.
func TestMutexPolls(t *testing.T) {
	w := newWorld(t, 2, 1)
	a, b := newTestMutex(w, 1, testLease), newTestMutex(w, 2, testLease)
	must(a.memory(patient(t)))(t).polled.Store(true)
	must(b.memory(patient(t)))(t).polled.Store(true)
	for range 3 {
		ha := must(a.Lock(patient(t)))(t)
		next := make(chan *Held)
		go func() { next <- must(b.Lock(patient(t)))(t) }()
		if err := ha.Unlock(); err != nil {
			t.Error(err)
		}
		if hb := <-next; hb.Token() <= ha.Token() {
			t.Errorf("token %d after %d", hb.Token(), ha.Token())
		} else if err := hb.Unlock(); err != nil {
			t.Error(err)
		}
	}
	if q := w.reg.Queues(); q != nil {
		t.Error("somebody waits at the home")
	}
}

// What is no lock with this lease is refused, and left as it is.
func TestMutexRefused(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	newTestMutex(w, 1, testLease)
	for _, c := range []struct {
		lease  time.Duration
		offset uint64
		want   error
	}{
		{2 * testLease, 0, ErrLayout},
		{testLease, 8, ErrParameter},
		{testLease, regionBytes - 64, xdpfab.ErrOutOfBounds},
		{time.Microsecond, 0, ErrParameter},
		{testLease, 1024, ErrLayout},
	} {
		word := must(xdpfab.Word[uint64](ctx, w.at(1, 0).Home, "parts", 1024/8+7))(t)
		if err := word.Store(ctx, 1); err != nil { // some data
			t.Fatal(err)
		}
		if _, err := NewMutex(ctx, w.at(1, c.offset), c.lease); !errors.Is(err, c.want) {
			t.Errorf("lease %v at offset %d: %v, want %v", c.lease, c.offset, err, c.want)
		}
	}
	if _, err := NewMutex(ctx, Place{Region: "parts"}, testLease); !errors.Is(err, ErrParameter) ||
		!errors.Is(err, xdpfab.ErrArgument) {
		t.Errorf("a place without a home: %v", err)
	}
}

// New memory whose numbers begin below those seen is refused.
func TestClockBehind(t *testing.T) {
	w := newWorld(t, 1, 1)
	m := newTestMutex(w, 1, testLease)
	m.saw(m.epoch + uint64(1000*time.Hour))
	w.restart(false)
	newTestMutex(w, 1, testLease) // of a program that has not seen them
	if _, err := m.Lock(patient(t)); !errors.Is(err, ErrClock) {
		t.Errorf("%v, want ErrClock", err)
	}
}
