// SPDX-License-Identifier: Apache-2.0

//go:build linux

package udpport

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// path is a way between two devices on a veth.
type path struct {
	t    *testing.T
	pair *testnet.Pair
	a, b *Device
}

// second is a further address of the second device.
const second = "198.18.77.2"

func newPath(t *testing.T) *path {
	t.Helper()
	testnet.Require(t)
	p := &path{t: t, pair: testnet.NewVeth(t, testnet.Options{})}
	testnet.IP(t, p.pair.B, "address add "+second+"/32 dev "+p.pair.B.IfName)
	testnet.IP(t, p.pair.A, "route add "+second+"/32 dev "+p.pair.A.IfName)
	p.a, p.b = p.open(p.pair.A), p.open(p.pair.B)
	return p
}

func (p *path) open(side *testnet.Side) (d *Device) {
	p.t.Helper()
	err := side.Do(func() (err error) {
		d, err = Open(side.IfName, Options{})
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		if err := d.Close(); err != nil {
			p.t.Error(err)
		}
	})
	return d
}

// burst sends equal frames to an address of the second device, which must all arrive
// whole and in order. It returns how many of them went in messages of several, and how
// many messages the kernel refused to cut.
func (p *path) burst(to netip.Addr, n, size int) (joined, uncut uint64) {
	p.t.Helper()
	l, err := p.a.Link(context.Background(), wire.Addr{IP: to})
	if err != nil {
		p.t.Fatal(err)
	}
	way, err := wire.NewTemplate(l)
	if err != nil {
		p.t.Fatal(err)
	}
	t := &p.a.queue.(*Queue).tally
	joined, uncut = t.joined.Load(), t.uncut.Load()
	for i := range n {
		if !send(p.a.queue, &way, size, byte(i)) {
			p.t.Fatal("no buffer")
		}
	}
	if err := p.a.queue.Flush(); err != nil {
		p.t.Fatal(err)
	}
	at := 0
	receive(p.t, p.b.queue, n, func(b []byte) {
		if want := bytes.Repeat([]byte{byte(at)}, size); !bytes.Equal(b[wire.WayLen:], want) {
			p.t.Errorf("frame %d of %d: %d bytes that begin with %d", at, n, len(b)-wire.WayLen, b[wire.WayLen])
		}
		at++
	})
	if lost := t.lost.Load(); lost != 0 {
		p.t.Errorf("%d packets were lost", lost)
	}
	return t.joined.Load() - joined, t.uncut.Load() - uncut
}

// recovers sends until frames are joined again, which must be so after as many as the
// refusal is for.
func (p *path) recovers(to netip.Addr, size int) {
	p.t.Helper()
	const n = 32
	for range apart/n + 1 {
		if joined, _ := p.burst(to, n, size); joined == n {
			return
		}
	}
	p.t.Errorf("after %d frames to %v, they still go one by one", apart+n, to)
}

// The kernel cuts no message whose frames are longer than the path's MTU: of a route, or
// of the device. Those frames go one by one, and none is lost; frames to others still go
// together, and so do those to this one once the MTU is what it was.
func TestPathNarrows(t *testing.T) {
	const n, size = 20, 1400
	for name, c := range map[string]struct {
		narrow, widen string
		to            string // empty: the first address of the family
		four          bool
		others        bool // are not narrowed
	}{
		"route":        {"route change %s/32 dev %s mtu 1300", "route change %s/32 dev %s", second, true, true},
		"device, IPv4": {"link set dev %[2]s mtu 1300", "link set dev %[2]s mtu 1500", "", true, false},
		"device, IPv6": {"link set dev %[2]s mtu 1300", "link set dev %[2]s mtu 1500", "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPath(t)
			to, other := p.pair.B.IP6, p.pair.B.IP6
			if c.four {
				to, other = p.pair.B.IP4, p.pair.B.IP4
			}
			if c.to != "" {
				to = netip.MustParseAddr(c.to)
			}
			joins := func(when string, to netip.Addr) {
				t.Helper()
				if joined, uncut := p.burst(to, n, size); joined != n || uncut != 0 {
					t.Errorf("%s: %d of %d frames went together, %d messages were refused", when, joined, n, uncut)
				}
			}
			joins("before", to)
			testnet.IP(t, p.pair.A, fmt.Sprintf(c.narrow, to, p.pair.A.IfName))
			if joined, uncut := p.burst(to, n, size); joined != 0 || uncut != 1 {
				t.Errorf("narrowed: %d frames went together, %d messages were refused, want 0 and 1", joined, uncut)
			}
			if joined, uncut := p.burst(to, n, size); joined != 0 || uncut != 0 {
				t.Errorf("still narrow: %d frames went together, %d messages were refused, want 0 and 0", joined, uncut)
			}
			if c.others {
				joins("to another one", other)
			}
			testnet.IP(t, p.pair.A, fmt.Sprintf(c.widen, to, p.pair.A.IfName))
			p.recovers(to, size)
			joins("after", to)
		})
	}
}

// What the kernel refuses for another reason is lost, and says nothing about messages:
// when the address of a socket has gone and is back, frames go together at once.
func TestAddressGoesAndComes(t *testing.T) {
	p := newPath(t)
	cidr := fmt.Sprintf("%v/24 dev %s", p.pair.A.IP4, p.pair.A.IfName)
	if joined, _ := p.burst(p.pair.B.IP4, 20, 1400); joined != 20 {
		t.Fatalf("%d of 20 frames went together", joined)
	}
	l, err := p.a.Link(context.Background(), wire.Addr{IP: p.pair.B.IP4})
	if err != nil {
		t.Fatal(err)
	}
	way, err := wire.NewTemplate(l)
	if err != nil {
		t.Fatal(err)
	}
	testnet.IP(t, p.pair.A, "address del "+cidr)
	testnet.IP(t, p.pair.A, fmt.Sprintf("route replace %v/32 dev %s", p.pair.B.IP4, p.pair.A.IfName))
	for range 20 {
		send(p.a.queue, &way, 1400, 1)
	}
	_ = p.a.queue.Flush()
	tally := &p.a.queue.(*Queue).tally
	if lost, uncut := tally.lost.Swap(0), tally.uncut.Load(); lost != 20 || uncut != 0 {
		t.Errorf("an address that has gone: %d frames were lost, want 20; %d refusals, want none", lost, uncut)
	}
	testnet.IP(t, p.pair.A, "address add "+cidr)
	if joined, _ := p.burst(p.pair.B.IP4, 20, 1400); joined != 20 {
		t.Errorf("back again: %d of 20 frames went together", joined)
	}
}

// A refusal holds for its destination, and for as many packets as it should.
func TestRefusals(t *testing.T) {
	var r refusals
	a, b := netip.MustParseAddr("10.0.0.1").As16(), netip.MustParseAddr("10.0.0.2").As16()
	if r.at(&a) == r.at(&b) {
		t.Error("neighbours have one place")
	}
	r.add(&a)
	r.add(&a)
	for i := range apart {
		if r.of(&a) == nil || r.of(&b) != nil {
			t.Fatalf("packet %d: want a refusal for %v alone", i, a)
		}
		r.left(&b)
		r.left(&a)
	}
	if r.of(&a) != nil || r.some != 0 {
		t.Errorf("a refusal for more than %d packets; %d are left", apart, r.some)
	}
	for e, want := range map[unix.Errno]bool{
		unix.EINVAL: true, unix.EMSGSIZE: true, unix.EIO: true, unix.EAGAIN: false, unix.EPERM: false, unix.ENETUNREACH: false,
	} {
		if refuses(e) != want {
			t.Errorf("%v: %t", e, !want)
		}
	}
}

// A packet that the kernel had no room for is made into a message again, and counts once.
func TestRefusalsCountPackets(t *testing.T) {
	const frames, tries = 5, 10
	a := netip.MustParseAddr("10.0.0.1")
	s := &socket{addr: a, as16: a.As16(), gathers: true}
	way := wire.Way{From: s.as16, To: netip.MustParseAddr("10.0.0.2").As16()}
	var x outlet
	x.init(100)
	for range frames {
		wire.PutWay(x.buffer(), &way)
		x.add(wire.WayLen + 50)
	}
	if n := x.gather(s); n != 1 {
		t.Fatalf("%d messages of %d equal frames, want 1", n, frames)
	}
	x.refused.add(&way.To)
	for range tries {
		if n := x.gather(s); n != frames {
			t.Fatalf("%d messages of %d frames that go one by one", n, frames)
		}
	}
	if left := x.refused.at(&way.To).left; left != apart {
		t.Errorf("%d of %d packets are left to go one by one, and none has gone", left, apart)
	}
	var counts tally
	x.push([]*socket{{addr: a, as16: s.as16, gathers: true, fd: -1}}, &counts) // the kernel refuses the descriptor
	if left := x.refused.at(&way.To).left; left != apart-frames || counts.lost.Load() != frames {
		t.Errorf("%d packets are left to go one by one, want %d; %d were lost, want %d", left, apart-frames,
			counts.lost.Load(), frames)
	}
}
