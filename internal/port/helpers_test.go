// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"context"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

var (
	_ engine.Port = (*Queue)(nil)
	_ engine.Port = (*Memory)(nil)
)

// patience is how long a test waits for an event that must come; only a failing
// test waits so long.
var patience = testnet.Patience

// node is an open interface in a namespace.
type node struct {
	*Interface
	side *testnet.Side
}

// open opens the interface of one side until the test ends.
func open(t testing.TB, side *testnet.Side, o Options) *node {
	t.Helper()
	n, err := tryOpen(side, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

func tryOpen(side *testnet.Side, o Options) (*node, error) {
	var i *Interface
	err := side.Do(func() (err error) {
		i, err = Open(context.Background(), side.IfName, o)
		return err
	})
	return &node{i, side}, err
}

// openPair opens both ends of a new cable alike.
func openPair(t testing.TB, net testnet.Options, o Options) (a, b *node) {
	t.Helper()
	p := testnet.NewPair(t, net)
	return open(t, p.A, o), open(t, p.B, o)
}

// addr is the node's address for an encapsulation.
func (n *node) addr(k wire.Kind) wire.Addr {
	switch k {
	case wire.UDP4:
		return wire.Addr{IP: n.side.IP4}
	case wire.UDP6:
		return wire.Addr{IP: n.side.IP6}
	}
	return wire.Addr{MAC: n.MAC()}
}

// stream is a run of frames from one queue to another.
type stream struct {
	tpl      wire.Template
	session  uint32
	maxFrame int
}

func newStream(t testing.TB, from, to *node, k wire.Kind, queue int) *stream {
	t.Helper()
	l, err := from.Link(context.Background(), to.addr(k))
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := wire.NewTemplate(l)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{tpl, uint32(wire.NewSessionID(lane, uint32(queue), 7, 3)), from.MTU() - k.Overhead()}
	s.tpl.SetFlow(s.session)
	return s
}

// put writes frame psn into b and returns the packet's length. Length and content
// follow from the psn, so that the receiver can check all of it.
func (s *stream) put(b []byte, psn uint32) int {
	frame := b[s.tpl.Len():]
	n := wire.MinFrame + int(psn*37)%(s.maxFrame-wire.MinFrame+1)
	h := wire.Header{Type: wire.Request, Session: s.session, PSN: psn, Ops: 1}
	h.Put(frame)
	for i := wire.HeaderLen; i < n; i++ {
		frame[i] = byte(i*7 + int(psn)*13)
	}
	return s.tpl.Put(b, wire.Seal(frame, n))
}

// check verifies a packet of the stream and returns its psn.
func (s *stream) check(t testing.TB, packet []byte) uint32 {
	t.Helper()
	frame, _, r := wire.Decap(packet)
	h, _, r2 := wire.Parse(frame)
	if r != wire.ReasonOK || r2 != wire.ReasonOK {
		t.Fatalf("packet of %d bytes: %v, %v: %x", len(packet), r, r2, packet[:min(len(packet), 64)])
	}
	want := make([]byte, len(packet)+s.maxFrame+wire.MaxEncap)
	if n := s.put(want, h.PSN); string(want[:n]) != string(packet) {
		t.Fatalf("frame %d: got %d bytes\n%x\nwant %d\n%x", h.PSN, len(packet), packet, n, want[:n])
	}
	return h.PSN
}

// send queues up to n packets from psn on and flushes them. It returns how many
// of them got a buffer.
func (s *stream) send(t testing.TB, q *Queue, psn uint32, n int) int {
	t.Helper()
	sent := 0
	for ; sent < n; sent++ {
		b := q.Buffer()
		if b == nil {
			break
		}
		q.Send(s.put(b, psn+uint32(sent)))
	}
	if err := q.Flush(); err != nil {
		t.Fatal(err)
	}
	return sent
}

// receive takes one burst and returns the psns.
func (s *stream) receive(t testing.TB, q *Queue) (psns []uint32) {
	t.Helper()
	var burst [64][]byte
	n := q.Receive(burst[:])
	for _, p := range burst[:n] {
		psns = append(psns, s.check(t, p))
		clear(p) // the engine may write to packets
	}
	q.Release()
	return psns
}

// run sends count packets from one queue to another, on one thread, and checks that all
// arrive once and in order but for those that the device refused. At most window packets
// are on their way at a time. They must be fewer than the receiver has buffers: the
// kernel delivers when it gets round to it, and drops what finds no buffer then.
func (s *stream) run(t testing.TB, from, to *Queue, count, window int) {
	t.Helper()
	if have := int(to.fill.Size()); window >= have {
		t.Fatalf("a window of %d packets for a receiver of %d buffers: want fewer", window, have)
	}
	next, sent, got := uint32(0), 0, 0
	seen := make([]bool, count)
	ordered := testnet.Borrowed(t) == nil // a cable of QEMU's may reorder what finds no buffer at once
	before := from.tally.lost.Load()
	refused := func() int { return int(from.tally.lost.Load() - before) }
	for end := time.Now().Add(patience); got+refused() < count; {
		sent += s.send(t, from, uint32(sent), min(count-sent, window-(sent-got-refused())))
		psns := s.receive(t, to)
		for _, psn := range psns {
			if int(psn) >= count || seen[psn] || ordered && psn < next {
				t.Fatalf("frame %d came after frame %d, want each once", psn, next-1)
			}
			seen[psn], next = true, psn+1
		}
		if got += len(psns); len(psns) > 0 {
			end = time.Now().Add(patience)
			continue
		}
		if time.Now().After(end) {
			stats, err := to.sock.Statistics()
			t.Fatalf("sent %d, %d refused by the device, %d arrived, and nothing more for %v; the receiver's socket: %+v, %v",
				sent, refused(), got, patience, stats, err)
		}
		from.Receive(nil) // moves on what is stalled
		to.Wait(time.Millisecond)
	}
}

// counters of an open interface.
func (n *node) counters(t testing.TB) map[string]uint64 {
	t.Helper()
	c, err := n.Counters()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// configure runs netlink requests on the side's interface.
func configure(t testing.TB, side *testnet.Side, f func(h *netlink.Handle, l netlink.Link) error) {
	t.Helper()
	h, err := netlink.NewHandleAt(side.NS, unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.LinkByName(side.IfName)
	if err == nil {
		err = f(h, l)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// chunk is the size of the node's packet buffers, in bytes.
func (n *node) chunk() int { return n.Queues()[0].umem.ChunkSize() }

// zeroCopy reports whether interfaces get zero-copy mode, where the driver takes buffers
// and gives them back when it likes.
func zeroCopy(t testing.TB) bool {
	t.Helper()
	return testnet.Granted(t).Copy == "zero-copy"
}

// coarse reports whether packet buffers are for a driver that may divide them: a NIC that
// is asked for zero-copy mode, whether it grants that or not.
func coarse(t testing.TB) bool {
	t.Helper()
	return testnet.Borrowed(t) != nil && testnet.Granted(t).XDP == "native"
}
