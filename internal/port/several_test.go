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
	return open(t, p.A, o), open(t, p.B, o)
}

// Packets of every length pass at MTUs at which they take several chunks, in every
// encapsulation, through rings that wrap around.
func TestPacketsInSeveralChunks(t *testing.T) {
	for _, c := range []struct {
		mtu, segments, window int
		xdp                   bpf.Mode
	}{{3499, 1, 31, bpf.Auto}, {4100, 2, 31, bpf.Auto}, {9000, 4, 31, bpf.Auto}, {65518, 16, 3, bpf.Auto}, {9000, 4, 31, bpf.Generic}} {
		t.Run(fmt.Sprintf("MTU %d, %v", c.mtu, c.xdp), func(t *testing.T) {
			a, b := openLong(t, jumbo(t, c.mtu), Options{RingSize: 128, UDP: true, XDP: c.xdp})
			if q := a.Queues()[0]; q.slab != c.segments || q.parts == nil || q.umem.ChunkSize() != 4096 {
				t.Errorf("slabs of %d chunks of %d bytes, want %d of 4096", q.slab, q.umem.ChunkSize(), c.segments)
			}
			for _, k := range kinds {
				newStream(t, a, b, k, 0).run(t, a.Queues()[0], b.Queues()[0], 500, c.window)
				newStream(t, b, a, k, 0).run(t, b.Queues()[0], a.Queues()[0], 500, c.window)
			}
			got := b.counters(t)
			if got["xsk_rx_dropped"]+got["xsk_tx_invalid_descs"]+got["bad_completions"] != 0 || got["xdp_redirect"]+a.counters(t)["tx_lost"] != 1500 {
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
	for _, psn := range largest {
		packet := qa.Buffer()
		qa.Send(s.put(packet, psn))
	}
	if err := qa.Flush(); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "all packets have come", func() bool { qa.Receive(nil); return b.counters(t)["xdp_redirect"] == count })
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
