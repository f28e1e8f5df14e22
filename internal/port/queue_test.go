// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

var kinds = []wire.Kind{wire.Ethernet, wire.UDP4, wire.UDP6}

func TestBurstsInEveryEncapsulation(t *testing.T) {
	queues := 2
	if testnet.Borrowed(t) != nil {
		queues = 1 // NICs choose the queue that a frame arrives on
	}
	a, b := openPair(t, testnet.Options{Queues: queues}, Options{UDP: true, RingSize: 256})
	for _, k := range kinds {
		for queue := range queues {
			t.Run(fmt.Sprintf("%v queue %d", k, queue), func(t *testing.T) {
				newStream(t, a, b, k, queue).run(t, a.Queues()[queue], b.Queues()[queue], 300, 16)
				newStream(t, b, a, k, queue).run(t, b.Queues()[queue], a.Queues()[queue], 300, 16)
			})
		}
	}
	c := b.counters(t)
	if want := uint64(queues*3*300) - a.counters(t)["tx_lost"]; c["xdp_redirect"] != want || c["xsk_rx_dropped"] != 0 || c["bad_completions"] != 0 {
		t.Errorf("%d packets were sent and not refused, counters %v", want, c)
	}
}

// Both ends send and receive at the same time, each on its own thread.
func TestBothDirectionsAtOnce(t *testing.T) {
	const count = 5000
	a, b := openPair(t, testnet.Options{}, Options{RingSize: 256})
	ab, ba := newStream(t, a, b, wire.Ethernet, 0), newStream(t, b, a, wire.Ethernet, 0)
	var wg sync.WaitGroup
	// Each side sends at most half a ring ahead of what the other has received, or
	// the ring of a thread that the machine keeps waiting would overflow.
	const ahead = 128
	var received [2]atomic.Int64
	side := func(q, peer *Queue, out *stream, mine, theirs *atomic.Int64) {
		defer wg.Done()
		var burst [64][]byte
		sent, got := 0, 0
		for end := time.Now().Add(patience); sent < count || q.stalled || got+int(peer.tally.lost.Load()) < count; {
			for i := 0; i < 16 && sent < count && sent < int(theirs.Load()+int64(q.tally.lost.Load()))+ahead; i++ {
				p := q.Buffer()
				if p == nil {
					break
				}
				q.Send(out.put(p, uint32(sent)))
				sent++
			}
			if err := q.Flush(); err != nil {
				t.Error(err)
				return
			}
			n := q.Receive(burst[:])
			for _, p := range burst[:n] {
				if frame, _, _ := wire.Decap(p); len(frame) < wire.MinFrame {
					t.Errorf("packet of %d bytes", len(p))
				}
			}
			q.Release()
			mine.Add(int64(n))
			if got += n; n == 0 {
				q.Wait(time.Millisecond)
				if time.Now().After(end) {
					t.Errorf("sent %d, %d arrived, peer lost %d", sent, got, peer.tally.lost.Load())
					return
				}
			}
		}
	}
	wg.Add(2)
	go side(a.Queues()[0], b.Queues()[0], ab, &received[0], &received[1])
	go side(b.Queues()[0], a.Queues()[0], ba, &received[1], &received[0])
	wg.Wait()
}

// Small rings, many laps, and MTUs whose packets take either size of chunk.
func TestRingsWrap(t *testing.T) {
	for _, mtu := range []int{256, 1774, 1775, 3498} {
		t.Run(fmt.Sprint("MTU ", mtu), func(t *testing.T) {
			p := testnet.NewPair(t, testnet.Options{})
			for _, side := range []*testnet.Side{p.A, p.B} {
				configure(t, side, func(h *netlink.Handle, l netlink.Link) error { return h.LinkSetMTU(l, mtu) })
			}
			o := Options{RingSize: 32}
			if zeroCopy(t) { // the driver's ring takes buffers, too: igb's has 256 entries
				o = Options{RingSize: 256, Chunks: 1024}
			}
			if a, err := tryOpen(p.A, o); err == nil {
				_ = a.Close()
			} else if errors.Is(err, unix.EINVAL) && testnet.Borrowed(t) != nil {
				t.Skip(err) // a driver's limit
			}
			a, b := open(t, p.A, o), open(t, p.B, o)
			small := 1774 // the largest MTU whose packets fit into 2 KiB
			if coarse(t) {
				small = 1006 // in units of 1 KiB, as some drivers take them
			}
			if want := map[bool]int{true: 2048, false: 4096}[mtu <= small]; a.chunk() != want {
				t.Errorf("chunks of %d bytes, want %d", a.chunk(), want)
			}
			if got := a.MTU(); got != mtu {
				t.Errorf("MTU %d, want %d", got, mtu)
			}
			s := newStream(t, a, b, wire.Ethernet, 0)
			s.run(t, a.Queues()[0], b.Queues()[0], 2000, 31)
			// A packet of exactly the largest size passes.
			if n := s.put(a.Queues()[0].Buffer(), 0); n > mtu+14 {
				t.Errorf("packet of %d bytes", n)
			}
		})
	}
}

// The receiver has 32 buffers: packets that arrive while all are taken are
// dropped and counted, and later packets arrive again.
func TestReceiverOverrun(t *testing.T) {
	if zeroCopy(t) {
		t.Skip("a driver with zero-copy drops, or holds back, what finds no buffer, and the socket does not count it")
	}
	a, b := openPair(t, testnet.Options{}, Options{RingSize: 32})
	s, qa, qb := newStream(t, a, b, wire.Ethernet, 0), a.Queues()[0], b.Queues()[0]
	for psn := uint32(0); psn < 104; {
		psn += uint32(s.send(t, qa, psn, min(8, 104-int(psn))))
	}
	for end := time.Now().Add(patience); ; {
		c := b.counters(t)
		if c["xsk_rx_dropped"]+c["xsk_rx_ring_full"]+32+qa.tally.lost.Load() == 104 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("of 104 packets for 32 buffers: %v", c)
		}
	}
	got := 0
	for n := -1; n != 0; got += n {
		n = len(s.receive(t, qb))
	}
	if got != 32 {
		t.Errorf("%d packets arrived in 32 buffers", got)
	}
	s.run(t, qa, qb, 100, 8)
}

func TestBuffersRunOutAndComeBack(t *testing.T) {
	const buffers = 32
	a, b := openPair(t, testnet.Options{}, Options{RingSize: 32, Chunks: 64})
	s, qa, qb := newStream(t, a, b, wire.Ethernet, 0), a.Queues()[0], b.Queues()[0]
	for lap := range 5 {
		testnet.Eventually(t, "the driver gives every buffer back", func() bool {
			if err := qa.Flush(); err != nil {
				t.Fatal(err)
			}
			return qa.pool.InFlight() == 0
		})
		n := uint32(0)
		for p := qa.Buffer(); p != nil; p = qa.Buffer() {
			if again := qa.Buffer(); &again[0] != &p[0] {
				t.Fatal("a second Buffer without Send returned another one")
			}
			qa.Send(s.put(p, n))
			n++
		}
		if n != buffers {
			t.Fatalf("lap %d: %d buffers before nil, want %d", lap, n, buffers)
		}
		qa.Send(60) // no buffer: does nothing
		if err := qa.Flush(); err != nil {
			t.Fatal(err)
		}
		want := uint32(0)
		for end := time.Now().Add(patience); int(want)+int(qa.tally.lost.Load()) < buffers; {
			for _, psn := range s.receive(t, qb) {
				if psn != want {
					t.Fatalf("frame %d, want %d", psn, want)
				}
				want++
			}
			if err := qa.Flush(); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(end) {
				t.Fatalf("lap %d: %d of %d arrived", lap, want, buffers)
			}
		}
	}
}

// A buffer that was taken and not used survives any number of flushes.
func TestUnsentBufferIsKept(t *testing.T) {
	a, b := openPair(t, testnet.Options{}, Options{RingSize: 32})
	s, qa, qb := newStream(t, a, b, wire.Ethernet, 0), a.Queues()[0], b.Queues()[0]
	for psn := range uint32(200) {
		p := qa.Buffer()
		n := s.put(p, psn)
		if psn%3 == 0 {
			if err := qa.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		qa.Send(n)
		if psn%3 != 0 {
			qa.Buffer() // reserved, and left over by the flush
		}
		if err := qa.Flush(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(patience); ; {
			if got := s.receive(t, qb); len(got) == 1 && got[0] == psn {
				break
			} else if len(got) > 0 || time.Now().After(end) {
				t.Fatalf("got frames %v, want %d", got, psn)
			}
		}
	}
}

// Kernels before 6.18 take 32 packets for each call. One Flush sends all the same.
func TestFlushOutlastsTheBudget(t *testing.T) {
	a, b := openPair(t, testnet.Options{}, Options{RingSize: 256})
	s, qa, qb := newStream(t, a, b, wire.Ethernet, 0), a.Queues()[0], b.Queues()[0]
	if qa.sock.TXBudget() > 32 {
		if err := unix.SetsockoptInt(qa.sock.FD(), unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, 32); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.send(t, qa, 0, 200); n != 200 {
		t.Fatalf("%d buffers, want 200", n)
	}
	if left := qa.tx.Size() - qa.tx.Free(); left != 0 && qa.tally.lost.Load() == 0 && !zeroCopy(t) {
		t.Errorf("%d packets left after Flush", left)
	}
	got := 0
	for end := time.Now().Add(patience); got+int(qa.tally.lost.Load()) < 200; {
		got += len(s.receive(t, qb))
		qa.Receive(nil)
		if time.Now().After(end) {
			t.Fatalf("%d of 200 arrived", got)
		}
	}
}

func TestDownAndUpAgain(t *testing.T) {
	a, b := openPair(t, testnet.Options{}, Options{RingSize: 32})
	s, qa := newStream(t, a, b, wire.Ethernet, 0), a.Queues()[0]
	setUp(t, a.side, false)
	queued := 0
	for lap := range 5 {
		for p := qa.Buffer(); p != nil; p = qa.Buffer() {
			qa.Send(s.put(p, 0))
			queued++
		}
		if err := qa.Flush(); !errors.Is(err, unix.ENETDOWN) {
			t.Fatalf("lap %d: Flush while the interface is down: %v, want ENETDOWN", lap, err)
		}
		quiet(t, qa)
	}
	setUp(t, a.side, true)
	for end := time.Now().Add(patience); qa.pool.InFlight() > 0; {
		if err := qa.Flush(); err != nil || time.Now().After(end) {
			t.Fatalf("up again: %v, %d in flight", err, qa.pool.InFlight())
		}
	}
	arrived := 0
	testnet.Eventually(t, "what was queued meanwhile arrives", func() bool {
		arrived += len(s.receive(t, b.Queues()[0]))
		return arrived+int(qa.tally.lost.Load()) >= queued
	})
	s.run(t, qa, b.Queues()[0], 200, 8)
}
