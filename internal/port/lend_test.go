// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

func requireLoans(t *testing.T) {
	t.Helper()
	if _, v := testnet.Kernel(t); !v.AtLeast(kernel.AdoptRings) {
		t.Skip("the rings of a bound socket belong to its process")
	}
}

// onlyKept returns a handler of events, for tests that lend queues. The kernel, or a test
// on a slow machine, may have a queue for longer than the port waits before it says so;
// any other event is an error.
func onlyKept(t *testing.T) func(Event) {
	return func(e Event) {
		if e.Kind != QueueKept && e.Kind != QueueBack || e.Err != nil {
			t.Errorf("%+v", e)
		}
	}
}

// A queue is the interface's until it is lent, then the borrower's, and the interface's
// again as soon as nobody has it open.
func TestLend(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 2, Straight: true})
	requireLoans(t)
	a, b := open(t, p.A, Options{}), open(t, p.B, Options{Lend: 1, RingSize: 256})
	if len(b.Queues()) != 1 {
		t.Fatalf("%d queues of its own: want 1 of 2", len(b.Queues()))
	}
	if _, err := b.Lend(); !errors.Is(err, ErrNoneLendable) {
		t.Errorf("before there is anybody who minds it: %v", err)
	}
	s := newStream(t, a, b, wire.Ethernet, 1)
	var psn, forwarders atomic.Uint32
	b.Mind(func(packet []byte) {
		if got := s.check(t, packet); got != psn.Load() {
			t.Errorf("frame %d, want %d", got, psn.Load())
		}
		forwarders.Add(1)
	}, onlyKept(t))
	state := func(state LendableState, lends uint64) {
		t.Helper()
		testnet.Eventually(t, "queue 1 is "+string(state), func() bool { return b.Spares()[0] == LendableQueue{1, state, lends} })
	}
	forwarder := func(n uint32) {
		t.Helper()
		psn.Store(n)
		q := a.Queues()[1]
		q.Send(s.put(q.Buffer(), n))
		if err := q.Flush(); err != nil {
			t.Fatal(err)
		}
		testnet.Eventually(t, "frame at a queue that is not lent", func() bool { return forwarders.Load() > n })
	}
	for n := range uint32(3) {
		state(LendableFree, uint64(n))
		forwarder(n)
		l, err := b.Lend()
		if err != nil {
			t.Fatal(err)
		}
		state(LendableLent, uint64(n)+1)
		if _, err := b.Lend(); !errors.Is(err, ErrNoneLendable) {
			t.Errorf("a second borrower: %v", err)
		}
		kept, err := unix.FcntlInt(uintptr(l.Socket), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		socket, memory := l.Socket, l.Memory
		l.Socket, l.Memory = -1, -1 // as if they had been passed on
		q, err := Adopt(l.Parts, socket, memory)
		if err != nil {
			t.Fatal(err)
		}
		s.run(t, a.Queues()[1], q, 600, 16) // more than twice the chunks
		newStream(t, b, a, wire.Ethernet, 1).run(t, q, a.Queues()[1], 600, 16)
		if copied, pages := q.Modes(); copied != xsk.Copy || pages > xsk.PagesHuge || q.Number() != 1 {
			t.Errorf("queue %d in mode %v", q.Number(), copied)
		}
		if c, err := q.Counters(); err != nil || len(c) != len(queueCounters) || c["xsk_rx_dropped"] != 0 {
			t.Errorf("%v, %v", c, err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
		l.Return()
		l.Return() // once
		state(LendableKept, uint64(n)+1)
		if _, err := b.Lend(); !errors.Is(err, ErrNoneLendable) {
			t.Errorf("while it is open elsewhere: %v", err)
		}
		if err := unix.Close(kept); err != nil {
			t.Fatal(err)
		}
	}
	state(LendableFree, 3)
	if c, err := b.Counters(); err != nil || c["queues_lent"] != 3 {
		t.Errorf("%d loans counted, %v", c["queues_lent"], err)
	}
}

// What was said of a queue has to be possible. The descriptors are closed in any case.
func TestAdoptRefuses(t *testing.T) {
	for _, p := range []Parts{{}, {Chunks: 64, RingSize: 33, ChunkSize: 2048}, {Chunks: 64, RingSize: 64, ChunkSize: 2048, TXBudget: 32}} {
		socket, err := unix.MemfdCreate("none", 0)
		memory, err2 := unix.MemfdCreate("none", unix.MFD_ALLOW_SEALING)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		if _, err := Adopt(p, socket, memory); err == nil {
			t.Errorf("%+v was adopted", p)
		}
		for _, fd := range []int{socket, memory} {
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); !errors.Is(err, unix.EBADF) {
				t.Errorf("%+v: a descriptor is open: %v", p, err)
			}
		}
	}
}

// An interface has a queue left that is not to be lent.
func TestTooManyToLend(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 2})
	requireLoans(t)
	for _, o := range []Options{{Lend: 2}, {Queues: 1, Lend: 2}, {Queues: 2, Lend: 1}} {
		if _, err := tryOpen(p.A, o); !errors.Is(err, xsk.ErrNoQueue) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := tryOpen(p.A, Options{Lend: -1}); err == nil {
		t.Error("-1 to lend")
	}
}
