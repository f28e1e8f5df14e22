// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"errors"
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// jumbo returns both sides of a cable with such an MTU, or skips the test.
func jumbo(t *testing.T, mtu int) *testnet.Pair {
	t.Helper()
	p := testnet.NewPair(t, testnet.Options{})
	lengthen(t, p, mtu)
	return p
}

// lengthen gives both sides an MTU at which packets take several chunks, or skips the
// test.
func lengthen(t *testing.T, p *testnet.Pair, mtu int) {
	t.Helper()
	if _, v := testnet.Kernel(t); !v.AtLeast(kernel.MultiBuffer) {
		t.Skipf("this kernel has no packets of several chunks; it takes %v", kernel.MultiBuffer)
	}
	for _, side := range []*testnet.Side{p.A, p.B} {
		configure(t, side, func(h *netlink.Handle, l netlink.Link) error {
			err := h.LinkSetMTU(l, mtu)
			if errors.Is(err, unix.EINVAL) && testnet.Borrowed(t) != nil {
				t.Skipf("MTU %d: %v", mtu, err) // a driver's limit
			}
			return err
		})
	}
}

// openLong opens both sides of a cable whose MTU takes several chunks, or skips the test.
func openLong(t *testing.T, p *testnet.Pair, o Options) (a, b *node) {
	t.Helper()
	try, err := tryOpen(p.A, o)
	if testnet.Borrowed(t) != nil && (errors.Is(err, ErrMTU) || errors.Is(err, unix.EINVAL)) {
		t.Skip(err) // a driver's limit
	}
	if err == nil {
		_ = try.Close()
	}
	a, b = open(t, p.A, o), open(t, p.B, o)
	passLong(t, a, b)
	passLong(t, b, a)
	return a, b
}

// passLong sends long packets until one arrives: the first one, but for NICs whose driver
// has receive buffers still that it made before the program was attached. virtio_net
// drops a packet that fills the first of such buffers so far that a page has no room for
// it behind the headroom, and one that takes more than 18 of them.
func passLong(t *testing.T, from, to *node) {
	t.Helper()
	const most = 1024 // packets; a ring has 256 buffers
	s := newStream(t, from, to, wire.Ethernet, 0)
	qa, qb := from.Queues()[0], to.Queues()[0]
	long := uint32(0) // the psn of a frame of nearly full length
	for wire.MinFrame+int(long*37)%(s.maxFrame-wire.MinFrame+1) <= s.maxFrame-37 {
		long++
	}
	gone := func() uint64 { return rxDropped(t, to.side) + qa.tally.lost.Load() }
	before := gone()
	for n := uint64(1); n <= most; n++ {
		s.send(t, qa, long, 1)
		came := false
		testnet.Eventually(t, "a long packet arrives, or is dropped", func() bool {
			qa.Receive(nil) // moves on what is stalled
			came = len(s.receive(t, qb)) > 0
			return came || gone()-before == n
		})
		if came {
			if n > 1 && testnet.Borrowed(t) == nil {
				t.Errorf("%d long packets were dropped before one came", n-1)
			}
			return
		}
	}
	t.Fatalf("none of %d long packets came", most)
}

// rxDropped is how many received packets the side's driver has dropped.
func rxDropped(t *testing.T, side *testnet.Side) (n uint64) {
	t.Helper()
	configure(t, side, func(_ *netlink.Handle, l netlink.Link) error {
		n = l.Attrs().Statistics.RxDropped
		return nil
	})
	return n
}

// Packets of every length pass at MTUs at which they take several chunks, in every
// encapsulation, through rings that wrap around.
func TestPacketsInSeveralChunks(t *testing.T) {
	for _, c := range []struct {
		mtu, segments, window int
		xdp                   bpf.Mode
	}{{3499, 1, 31, bpf.Auto}, {4100, 2, 31, bpf.Auto}, {9000, 4, 31, bpf.Auto}, {63318, 16, 3, bpf.Auto},
		{65518, 16, 3, bpf.Auto}, {9000, 4, 31, bpf.Generic}} {
		t.Run(fmt.Sprintf("MTU %d, %v", c.mtu, c.xdp), func(t *testing.T) {
			a, b := openLong(t, jumbo(t, c.mtu), Options{RingSize: 128, UDP: true, XDP: c.xdp})
			if q := a.Queues()[0]; q.slab != c.segments || q.parts == nil || q.umem.ChunkSize() != 4096 {
				t.Errorf("slabs of %d chunks of %d bytes, want %d of 4096", q.slab, q.umem.ChunkSize(), c.segments)
			}
			reckoned := func() uint64 { return b.counters(t)["xdp_redirect"] + a.counters(t)["tx_lost"] }
			before := reckoned()
			for _, k := range kinds {
				newStream(t, a, b, k, 0).run(t, a.Queues()[0], b.Queues()[0], 500, c.window)
				newStream(t, b, a, k, 0).run(t, b.Queues()[0], a.Queues()[0], 500, c.window)
			}
			got := b.counters(t)
			if got["xsk_rx_dropped"]+got["xsk_tx_invalid_descs"]+got["bad_completions"] != 0 || reckoned()-before != 1500 {
				t.Errorf("counters %v", got)
			}
			if (got["gathered"] > 0) != (c.segments > 1) {
				t.Errorf("%d packets were joined, at an MTU that takes %d chunks", got["gathered"], c.segments)
			}
		})
	}
}

// More packets wait than one call of Receive can join, and fewer views are asked for than
// there are packets: each comes once, whole, with a later call.
func TestJoinedPacketsAreBounded(t *testing.T) {
	const count = 2*joined + 10
	a, b := openLong(t, jumbo(t, 9000), Options{})
	s := newStream(t, a, b, wire.Ethernet, 0)
	qa, qb := a.Queues()[0], b.Queues()[0]
	var largest [count]uint32 // psns of frames that take several chunks
	for n, psn := 0, uint32(0); n < count; psn++ {
		if wire.MinFrame+int(psn*37)%(s.maxFrame-wire.MinFrame+1) > 5000 {
			largest[n], n = psn, n+1
		}
	}
	before := b.counters(t)["xdp_redirect"]
	for _, psn := range largest {
		packet := qa.Buffer()
		qa.Send(s.put(packet, psn))
	}
	if err := qa.Flush(); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "all packets have come", func() bool {
		qa.Receive(nil)
		return b.counters(t)["xdp_redirect"]-before == count
	})
	views := make([][]byte, joined+5)
	got := 0
	for round := 0; got < count && round < 100; round++ {
		n := qb.Receive(views[:max(1, (joined+5)*(round%2))])
		if n > joined {
			t.Fatalf("%d packets of one call, want at most %d", n, joined)
		}
		for _, v := range views[:n] {
			if psn := s.check(t, v); psn != largest[got] {
				t.Fatalf("packet %d is frame %d, want %d", got, psn, largest[got])
			}
			got++
		}
		qb.Release()
	}
	if got != count {
		t.Errorf("%d of %d packets came", got, count)
	}
}
