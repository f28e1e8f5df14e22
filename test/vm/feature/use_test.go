// SPDX-License-Identifier: Apache-2.0

//go:build linux

package feature

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	xdp "github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xsk"
)

// attach puts the project's program on a side's interface, natively.
func attach(t *testing.T, s *testnet.Side) *xdp.Program {
	t.Helper()
	var p *xdp.Program
	err := s.Do(func() (err error) {
		if p, err = xdp.Load(xdp.Config{MAC: [6]byte(s.MAC)}, 2); err != nil {
			return err
		}
		return p.Attach(s.IfIndex, xdp.Native)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// attachedTo returns the id of the program on a side's interface, 0 if there is
// none.
func attachedTo(t *testing.T, s *testnet.Side) (id uint32) {
	t.Helper()
	err := s.Do(func() error {
		l, err := netlink.LinkByIndex(s.IfIndex)
		if err == nil && l.Attrs().Xdp != nil && l.Attrs().Xdp.Attached {
			id = l.Attrs().Xdp.ProgId
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func useNative(t *testing.T, p *testnet.Pair) {
	if x := attach(t, p.A); x.Mode() != xdp.Native || attachedTo(t, p.A) != x.ID() {
		t.Errorf("mode %v, program %d on the interface, want %d natively", x.Mode(), attachedTo(t, p.A), x.ID())
	}
}

// useLink: the program is detached when its owner ends.
func useLink(t *testing.T, p *testnet.Pair) {
	x := attach(t, p.A)
	if attachedTo(t, p.A) == 0 {
		t.Error("not attached")
	}
	if err := x.Close(); err != nil || attachedTo(t, p.A) != 0 {
		t.Errorf("after closing: %v, program %d is left", err, attachedTo(t, p.A))
	}
}

// useMmapable: memory that a map and a process share.
func useMmapable(t *testing.T, _ *testnet.Pair) {
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1, Flags: unix.BPF_F_MMAPABLE})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b, err := unix.Mmap(m.FD(), 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(b) }()
	b[0] = 42
	var v uint64
	if err := m.Lookup(uint32(0), &v); err != nil || v != 42 {
		t.Errorf("the map holds %d, %v; want 42, as written to its memory", v, err)
	}
}

func useXDPFeatures(t *testing.T, p *testnet.Pair) {
	var i nic.Interface
	err := p.A.Do(func() (err error) {
		i, err = nic.Inspect(p.A.IfName)
		return err
	})
	if err != nil || !i.FeaturesKnown || !slices.Contains(i.Features, "basic") || !slices.Contains(i.Features, "redirect") {
		t.Errorf("%+v, %v; want the features of veth", i, err)
	}
}

const ringSize = 256

// end is a socket with half of its chunks to receive into.
type end struct {
	*xsk.Socket
	free int // the first chunk to send from
}

// station opens a socket with a program that feeds it.
func station(t *testing.T, s *testnet.Side, c xsk.Config) *end {
	t.Helper()
	if c.UMEM == nil {
		u, err := xsk.NewUMEM(xsk.UMEMConfig{Chunks: 2 * ringSize})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = u.Close() })
		c.UMEM = u
	}
	c.IfIndex, c.RXSize, c.TXSize, c.FillSize, c.CompletionSize = s.IfIndex, ringSize, ringSize, ringSize, ringSize
	e := &end{free: ringSize}
	err := s.Do(func() (err error) {
		e.Socket, err = xsk.Open(c)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// receiver is a station that the project's program redirects to.
func receiver(t *testing.T, s *testnet.Side, c xsk.Config) *end {
	t.Helper()
	e := station(t, s, c)
	e.fill(0, ringSize)
	if err := attach(t, s).SetSocket(c.Queue, 0, e.FD()); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *end) fill(first, n int) {
	n = e.Fill().Reserve(n)
	for i := range n {
		e.Fill().Set(i, e.UMEM().Addr(first+i))
	}
	e.Fill().Submit(n)
	e.WakeRX()
}

// packet returns a frame that the program redirects to the socket: version 1, a
// request.
func packet(to, from *testnet.Side, n int) []byte {
	b := make([]byte, n)
	copy(b, to.MAC)
	copy(b[6:], from.MAC)
	copy(b[12:], []byte{0x88, 0xb5, 1<<4 | 3})
	for i := 20; i < n; i++ {
		b[i] = byte(i)
	}
	return b
}

// send queues n packets.
func (e *end) send(t *testing.T, p []byte, n int) {
	t.Helper()
	if got := e.TX().Reserve(n); got != n {
		t.Fatalf("room for %d packets, want %d", got, n)
	}
	for i := range n {
		at := e.UMEM().Addr(e.free + i)
		e.TX().Set(i, xsk.Desc{Addr: at, Len: uint32(copy(e.UMEM().Chunk(at), p))})
	}
	e.TX().Submit(n)
}

// expect waits for n packets.
func (e *end) expect(t *testing.T, p []byte, n int) {
	t.Helper()
	for got, end := 0, time.Now().Add(time.Minute); got < n; {
		k := e.RX().Peek(n)
		for i := range k {
			if f := e.UMEM().Frame(e.RX().Get(i)); !bytes.Equal(f, p) {
				t.Fatalf("received %x, want %x", f, p)
			}
		}
		e.RX().Release(k)
		if got += k; time.Now().After(end) {
			t.Fatalf("%d packets of %d arrived", got, n)
		}
		if k == 0 {
			e.WakeRX()
			_, _ = e.Poll(time.Millisecond, nil)
		}
	}
}

// carry sends packets from A to B until B has n of them.
func carry(t *testing.T, p *testnet.Pair, a, b *end, n int) {
	t.Helper()
	f := packet(p.B, p.A, 100)
	a.send(t, f, n)
	for a.TX().Free() < a.TX().Size() {
		if r := a.Kick(); r.Err() != nil {
			t.Fatal(r.Err())
		}
	}
	b.expect(t, f, n)
}

func useNeedWakeup(t *testing.T, p *testnet.Pair) {
	a := station(t, p.A, xsk.Config{})
	if !a.TX().NeedWakeup() {
		t.Error("in copy mode TX always needs a wake-up, and does not say so")
	}
	carry(t, p, a, receiver(t, p.B, xsk.Config{}), 20)
}

// useShared: two sockets on two queues with one UMEM, and what the second sends.
func useShared(t *testing.T, p *testnet.Pair) {
	first := station(t, p.A, xsk.Config{})
	second := station(t, p.A, xsk.Config{Shared: first.Socket, UMEM: first.UMEM(), Queue: 1})
	carry(t, p, second, receiver(t, p.B, xsk.Config{Queue: 1}), 20)
}

func useBusyPoll(t *testing.T, p *testnet.Pair) {
	busy := xsk.Config{BusyPoll: xsk.BusyPoll{Time: 20 * time.Microsecond}}
	carry(t, p, station(t, p.A, xsk.Config{}), receiver(t, p.B, busy), 5)
}

// useBudget: one call sends as much as several calls otherwise.
func useBudget(t *testing.T, p *testnet.Pair) {
	const burst = 100
	a, b := station(t, p.A, xsk.Config{TXBudget: ringSize, SendBuffer: 1 << 20}), receiver(t, p.B, xsk.Config{})
	f := packet(p.B, p.A, 100)
	a.send(t, f, burst)
	if r := a.Kick(); r != xsk.KickOK || a.TX().Free() != a.TX().Size() {
		t.Errorf("one call: %v, %d packets of %d are left", r, a.TX().Size()-a.TX().Free(), burst)
	}
	b.expect(t, f, burst)
}

// useMultiBuffer: a packet of three chunks arrives as one of several descriptors.
func useMultiBuffer(t *testing.T, _ *testnet.Pair) {
	p := testnet.NewPair(t, testnet.Options{MTU: 6000})
	a := station(t, p.A, xsk.Config{MultiBuffer: true})
	b := station(t, p.B, xsk.Config{MultiBuffer: true})
	b.fill(0, ringSize)
	redirectAll(t, p.B, b.FD())
	want := packet(p.B, p.A, 5500)
	const part = 2000
	parts := (len(want) + part - 1) / part
	a.TX().Reserve(parts)
	for i := range parts {
		at := a.UMEM().Addr(a.free + i)
		d := xsk.Desc{Addr: at, Len: uint32(copy(a.UMEM().Chunk(at)[:part], want[part*i:])), Options: xsk.Continued}
		if i == parts-1 {
			d.Options = 0
		}
		a.TX().Set(i, d)
	}
	a.TX().Submit(parts)
	if r := a.Kick(); r.Err() != nil {
		t.Fatal(r.Err())
	}
	var got []byte
	n := 0
	for more, end := true, time.Now().Add(time.Minute); more; {
		if k := b.RX().Peek(1); k == 1 {
			d := b.RX().Get(0)
			got, more = append(got, b.UMEM().Frame(d)...), d.Options&xsk.Continued != 0
			b.RX().Release(1)
			n++
			if !more && !bytes.HasPrefix(got, want[:14]) { // the kernel's own, such as neighbour discovery
				got, n, more = nil, 0, true
			}
		} else if _, _ = b.Poll(time.Millisecond, nil); time.Now().After(end) {
			t.Fatalf("%d bytes arrived, want %d", len(got), len(want))
		}
	}
	if n < 2 || !bytes.Equal(got, want) {
		t.Errorf("%d bytes in %d descriptors, want the %d that were sent in more than one", len(got), n, len(want))
	}
}
