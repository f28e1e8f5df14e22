// SPDX-License-Identifier: Apache-2.0

//go:build linux

package xsk

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// exchange sends total frames from a to b in bursts and checks that each arrives
// whole, once and in order. On NICs each burst may arrive in any order: a cable of QEMU's
// reorders what finds no buffer at once.
func exchange(t *testing.T, a, b *node, lane byte, total int) {
	t.Helper()
	next := uint32(0)
	ordered, seen := testnet.Borrowed(t) == nil, make([]bool, total)
	for sent := 0; sent < total; {
		n := a.send(lane, uint32(sent), min(48, total-sent))
		sent += n
		a.flush(t)
		b.await(t, n, func(f []byte) {
			if seq := check(t, f, lane); int(seq) >= total || seen[seq] || ordered && seq != next {
				t.Fatalf("frame %d arrived, want %d, or one that has not arrived", seq, next)
			} else {
				seen[seq] = true
			}
			next++
		})
	}
	if a.lost > 0 {
		t.Errorf("%d frames lost on a link that is never full", a.lost)
	}
}

// settle reaps until every frame is back.
func settle(t *testing.T, n *node) {
	t.Helper()
	for deadline := time.Now().Add(testnet.Patience); n.pool.InFlight() > 0; {
		n.Kick()
		n.pool.Reap(n.Completion(), 256)
		if time.Now().After(deadline) {
			t.Fatalf("%d frames never completed", n.pool.InFlight())
		}
	}
	if n.pool.Bogus() > 0 {
		t.Errorf("%d bogus completions", n.pool.Bogus())
	}
}

func TestBothDirectionsManyLaps(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	ma, mb := redirect(t, p.A), redirect(t, p.B)
	for _, need := range []bool{true, false} {
		t.Run(map[bool]string{true: "need-wakeup", false: "no-need-wakeup"}[need], func(t *testing.T) {
			cfg := Config{NoNeedWakeup: !need, RXSize: 64, TXSize: 64, FillSize: 64, CompletionSize: 64}
			a, b := station(t, p.A, ma, cfg), station(t, p.B, mb, cfg)
			const total = 20000 // 312 laps of each ring
			exchange(t, a, b, 0, total)
			exchange(t, b, a, 0, total)
			settle(t, a)
			settle(t, b)
			for _, n := range []*node{a, b} {
				if want := testnet.Granted(t).Copy; n.Mode().String() != want {
					t.Errorf("mode %v, want %s", n.Mode(), want)
				}
				st, err := n.Statistics()
				if err != nil || st.RXDropped+st.RXRingFull+st.RXInvalidDescs+st.TXInvalidDescs != 0 {
					t.Errorf("statistics after a clean run: %+v, %v", st, err)
				}
			}
		})
	}
}

func TestSeveralSocketsOnOneQueue(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	ma, mb := redirect(t, p.A), redirect(t, p.B)
	a := station(t, p.A, ma, Config{})
	b := station(t, p.B, mb, Config{})
	groups := [2][]*node{{a}, {b}}
	for i, g := range []struct {
		side  *testnet.Side
		first *node
	}{{p.A, a}, {p.B, b}} {
		for range lanes - 1 {
			s := open(t, g.side, Config{Shared: g.first.Socket, RXSize: 256, TXSize: 256})
			if s.Fill() != g.first.Fill() || s.Completion() != g.first.Completion() {
				t.Fatal("sockets on one queue have separate Fill or Completion rings")
			}
			groups[i] = append(groups[i], &node{Socket: s, pool: g.first.pool})
		}
	}
	for lane := range lanes {
		enter(t, ma, groups[0][lane].Socket, lane)
		enter(t, mb, groups[1][lane].Socket, lane)
	}
	for lane := range lanes {
		exchange(t, groups[0][lane], groups[1][lane], byte(lane), 1000)
		exchange(t, groups[1][lane], groups[0][lane], byte(lane), 1000)
	}
	// The shared rings outlive the socket that made them.
	ma.Delete(uint32(0))
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	exchange(t, groups[0][1], groups[1][1], 1, 1000)
	exchange(t, groups[1][1], groups[0][1], 1, 1000)
	settle(t, groups[0][1])
}

func TestSharedUMEMAcrossQueuesAndNamespaces(t *testing.T) {
	if testnet.KernelBefore(t, 5, 14) {
		t.Skip("this kernel does not tell its namespaces apart (SO_NETNS_COOKIE); it takes 5.14")
	}
	p := testnet.NewPair(t, testnet.Options{Queues: 2, Straight: true})
	ma, mb := redirect(t, p.A), redirect(t, p.B)
	const size = 64
	u := newUMEM(t, 8*size)
	cfg := Config{UMEM: u, RXSize: size, TXSize: size, FillSize: size, CompletionSize: size}
	// Both interfaces have the same index and queues, in different namespaces.
	var nodes [4]*node
	for i, side := range []*testnet.Side{p.A, p.A, p.B, p.B} {
		cfg.Queue = i % 2
		nodes[i] = &node{Socket: open(t, side, cfg)}
		cfg.Shared = nodes[0].Socket
		var err error
		if nodes[i].pool, err = u.Pool((2*i+1)*size, size); err != nil {
			t.Fatal(err)
		}
		fill(nodes[i].Socket, 2*i*size, size)
		if i > 0 && nodes[i].Fill() == nodes[0].Fill() {
			t.Error("sockets on separate queues have one Fill ring")
		}
	}
	for i, n := range nodes {
		enter(t, []*ebpf.Map{ma, ma, mb, mb}[i], n.Socket, 0)
	}
	// veth delivers what queue q sends to the peer's queue q.
	for q := range 2 {
		exchange(t, nodes[q], nodes[2+q], 0, 1000)
		exchange(t, nodes[2+q], nodes[q], 0, 1000)
	}
	for _, n := range nodes {
		settle(t, n)
	}
}

func TestPacketOverSeveralChunks(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{MTU: 9000})
	cfg := Config{MultiBuffer: true, RXSize: 64, TXSize: 64, FillSize: 64, CompletionSize: 64}
	if testnet.KernelBefore(t, 6, 6) {
		cfg.UMEM = newUMEM(t, 128)
		if _, err := tryOpen(p.A, cfg); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "6.6") {
			t.Fatalf("on a kernel without multi-buffer: %v", err)
		}
		t.Skip("this kernel has no multi-buffer; it takes 6.6")
	}
	ma, err := tryRedirect(t, p.A)
	if errors.Is(err, unix.EINVAL) && testnet.Borrowed(t) != nil {
		t.Skipf("this driver takes no XDP program for packets of several chunks: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	mb := redirect(t, p.B)
	a, b := station(t, p.A, ma, cfg), station(t, p.B, mb, cfg)
	want := make([]byte, 8000)
	for i := range want {
		want[i] = byte(i * 7)
	}
	frame(want, 0, 0)
	parts := a.TX().Reserve(4)
	for i := range parts {
		addr, _ := a.pool.Get()
		a.pool.Sent(addr)
		d := Desc{Addr: addr, Len: uint32(copy(a.UMEM().Chunk(addr)[:2000], want[2000*i:])), Options: Continued}
		if i == parts-1 {
			d.Options = 0
		}
		a.TX().Set(i, d)
	}
	a.TX().Submit(parts)
	a.flush(t)
	settle(t, a)
	var got []byte
	for more := true; more; {
		if ready, err := b.Poll(testnet.Patience, nil); !ready || err != nil {
			st, _ := b.Statistics()
			t.Fatalf("after %d bytes: ready %v, %v; %+v", len(got), ready, err, st)
		}
		n := b.RX().Peek(64)
		for i := range n {
			d := b.RX().Get(i)
			got = append(got, b.UMEM().Frame(d)...)
			more = d.Options&Continued != 0
		}
		b.RX().Release(n)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, want the %d that were sent", len(got), len(want))
	}
}

func TestQueuesAreSeparate(t *testing.T) {
	const queues = 3
	p := testnet.NewPair(t, testnet.Options{Queues: queues, Straight: true})
	ma, mb := redirect(t, p.A), redirect(t, p.B)
	var as, bs []*node
	for q := range queues {
		as, bs = append(as, station(t, p.A, ma, Config{Queue: q})), append(bs, station(t, p.B, mb, Config{Queue: q}))
	}
	for q := range queues {
		exchange(t, as[q], bs[q], 0, 500)
	}
	for q := range queues {
		if n := bs[q].RX().Available(); n != 0 {
			t.Errorf("queue %d: %d frames too many", q, n)
		}
	}
}

func TestTXOnlyAndRXOnly(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	ma, mb := redirect(t, p.A), redirect(t, p.B)
	a := station(t, p.A, ma, Config{RXSize: NoRing, TXSize: 64, FillSize: 64, CompletionSize: 64})
	b := station(t, p.B, mb, Config{RXSize: 64, TXSize: NoRing, FillSize: 64, CompletionSize: 64})
	exchange(t, a, b, 0, 500)
	if a.RX().Peek(1) != 0 || a.RX().Size() != 0 || b.TX().Reserve(1) != 0 || b.TX().Size() != 0 {
		t.Error("a ring that was left out holds entries")
	}
	if ready, err := a.Poll(time.Minute, nil); !ready || err != nil {
		t.Errorf("poll of a sender with room: %v, %v", ready, err)
	}
	if r := b.Kick(); r != KickNoBuffers {
		t.Errorf("kick of a socket without TX: %v", r)
	}
}

func TestBurstOf512(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	ma, mb := redirect(t, p.A), redirect(t, p.B)
	const burst = 512
	cfg := Config{RXSize: burst, TXSize: burst, FillSize: burst, CompletionSize: burst}
	for _, budget := range []int{0, defaultTXBudget} {
		cfg.TXBudget = budget
		a, b := station(t, p.A, ma, cfg), station(t, p.B, mb, cfg)
		if budget != 0 && a.TXBudget() != budget {
			t.Errorf("budget %d, want %d", a.TXBudget(), budget)
		}
		for seq := 0; seq < burst; {
			seq += a.send(0, uint32(seq), burst-seq)
		}
		kicks, again := 0, 0
		for a.TX().Free() < a.TX().Size() {
			r := a.Kick()
			kicks++
			switch {
			case r == KickLost:
				a.lost++
			case r == KickAgain:
				again++
			case r != KickOK:
				t.Fatal(r.Err())
			}
		}
		// 512 frames are twice what the link's queue holds: some may be lost, and
		// each loss is reported. All others arrive, but for those that a NIC drops for
		// want of a chunk in its driver's ring.
		certain := burst - a.lost
		if zeroCopy(t) {
			certain = driverRing - 1 // one entry of a ring stays empty
		}
		b.await(t, certain, func(f []byte) { check(t, f, 0) })
		if n := b.RX().Available(); n != 0 && !zeroCopy(t) {
			t.Errorf("%d frames arrived that were reported lost", n)
		}
		settle(t, a)
		if a.pool.Free() != burst {
			t.Errorf("%d frames free, want %d", a.pool.Free(), burst)
		}
		t.Logf("budget %d: %d kicks, %d EAGAIN, %d lost", a.TXBudget(), kicks, again, a.lost)
		a.Close()
		b.Close()
	}
}

func TestOverflowIsCounted(t *testing.T) {
	if zeroCopy(t) {
		t.Skip("a driver with zero-copy drops, or holds back, what finds no buffer, and the socket does not count it")
	}
	p := testnet.NewPair(t, testnet.Options{})
	ma, mb := redirect(t, p.A), redirect(t, p.B)
	a := station(t, p.A, ma, Config{})
	b := station(t, p.B, mb, Config{RXSize: 8, TXSize: 8, FillSize: 64, CompletionSize: 8})
	a.send(0, 0, 32)
	a.flush(t)
	settle(t, a)
	wait(t, func() bool { st, _ := b.Statistics(); return st.RXRingFull == 32-8 })
	b.await(t, 8, func(f []byte) { check(t, f, 0) })

	// Fill has 64 chunks. There is no room for the frames after that.
	c := open(t, p.B, Config{Shared: b.Socket, RXSize: 128, TXSize: NoRing})
	enter(t, mb, c, 1)
	for sent := 0; sent < 128; {
		sent += a.send(1, uint32(sent), 32)
		a.flush(t)
		settle(t, a)
	}
	wait(t, func() bool { st, _ := c.Statistics(); return st.RXDropped == 128-64 && st.FillRingEmpty > 0 })
	if n := c.RX().Available(); n != 64 {
		t.Errorf("%d frames received into 64 chunks", n)
	}

	// Descriptors that do not lie in a chunk are refused, not sent.
	for i, d := range []Desc{{Addr: 1 << 40, Len: 60}, {Addr: 2000, Len: 100}, {Addr: 0, Len: 60, Options: 1 << 7}} {
		a.TX().Reserve(1)
		a.TX().Set(0, d)
		a.TX().Submit(1)
		a.flush(t)
		wait(t, func() bool { st, _ := a.Statistics(); return st.TXInvalidDescs == uint64(i+1) })
		if a.UMEM().Frame(d) != nil && d.Options == 0 {
			t.Errorf("UMEM.Frame accepts %+v", d)
		}
	}
	// So are addresses in Fill; the kernel counts the frame as dropped.
	b.Fill().Reserve(1)
	b.Fill().Set(0, 1<<40)
	b.Fill().Submit(1)
	a.send(1, 0, 1)
	a.flush(t)
	wait(t, func() bool { st, _ := c.Statistics(); return st.RXDropped == 128-64+1 })
}

// wait polls for an event that the kernel causes when it likes.
func wait(t *testing.T, cond func() bool) {
	t.Helper()
	testnet.Eventually(t, "the kernel's counters are as they should be", cond)
}

func TestPollWatchesOthersToo(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	a := station(t, p.A, redirect(t, p.A), Config{})
	if ready, err := a.Poll(time.Millisecond, nil); ready || err != nil {
		t.Errorf("idle socket: %v, %v", ready, err)
	}
	bell, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(bell)
	fds := []unix.PollFd{{Fd: int32(bell), Events: unix.POLLIN}}
	go func() {
		testnet.Blocked(t, 1, "xsk.(*Socket).Poll")
		unix.Write(bell, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	}()
	if ready, err := a.Poll(-1, fds); ready || err != nil || fds[0].Revents != unix.POLLIN {
		t.Errorf("bell rung: ready %v, %v, events %#x", ready, err, fds[0].Revents)
	}
	if _, err := a.Poll(0, make([]unix.PollFd, maxPollFDs)); err == nil {
		t.Error("too many descriptors accepted")
	}
}
