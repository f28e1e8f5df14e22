// SPDX-License-Identifier: Apache-2.0

//go:build linux

package topology

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/xdpfab/xdpfab/internal/kernel"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/faultwire"
	"github.com/xdpfab/xdpfab/internal/testnet/veth"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

const times = 200 // additions that a client makes

func TestPair(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	serve(t, p.B, xdpfab.DomainAttr{})
	d := open(t, p.A, xdpfab.DomainAttr{})
	for i, addr := range []string{p.B.MAC.String(), p.B.IP4.String(), p.B.IP6.String()} {
		count(t, word(t, d, addr, 0), uint64(i)*times, times)
	}
}

func TestMultiQueue(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{Queues: 4})
	serve(t, p.B, xdpfab.DomainAttr{})
	d := open(t, p.A, xdpfab.DomainAttr{})
	if n := d.Interface().Queues; n != 4 {
		t.Errorf("%d queues in use, want 4", n)
	}
	count(t, word(t, d, p.B.MAC.String(), 0), 0, times)
}

// The smallest MTU, the largest at which a packet lies in one buffer of veth, and that of
// jumbo frames. An array of this length takes more than one frame with any.
func TestMTU(t *testing.T) {
	mtus := []int{256, 3498}
	if several(t) {
		mtus = append(mtus, 9000)
	}
	for _, mtu := range mtus {
		p := testnet.NewPair(t, testnet.Options{MTU: mtu})
		attr := xdpfab.DomainAttr{}
		serve(t, p.B, attr)
		d := open(t, p.A, attr)
		count(t, word(t, d, p.B.MAC.String(), 0), 0, times)
		count(t, word(t, d, p.B.IP4.String(), 1), 0, times)
	}
}

// several reports whether the kernel has packets in several buffers.
func several(t *testing.T) bool {
	t.Helper()
	_, v := testnet.Kernel(t)
	return v.AtLeast(kernel.MultiBuffer)
}

// A larger MTU is refused by an older kernel, and the error names one that would do.
func TestJumboMTU(t *testing.T) {
	if several(t) {
		t.Skip("this kernel has packets in several buffers: TestMTU")
	}
	p := testnet.NewPair(t, testnet.Options{MTU: 9000})
	err := p.A.Do(func() error {
		d, err := xdpfab.Open(limited(t), p.A.IfName, xdpfab.DomainAttr{})
		if err == nil {
			_ = d.CloseAll()
		}
		return err
	})
	if err == nil || !contains(err, "MTU 9000", "ip link set dev veth0 mtu") {
		t.Errorf("an MTU of 9000: %v", err)
	}
}

// Several clients of one server, each by a port of the bridge.
func TestStar(t *testing.T) {
	const clients = 3
	s := testnet.NewStar(t, clients+1, testnet.Options{})
	serve(t, s.Sides[0], xdpfab.DomainAttr{})
	var all sync.WaitGroup
	for i := range uint64(clients) {
		w := word(t, open(t, s.Sides[i+1], xdpfab.DomainAttr{}), s.Sides[0].MAC.String(), i)
		all.Go(func() {
			for n := range uint64(times) {
				if got, err := w.Add(limited(t), 1); err != nil || got != n+1 {
					t.Errorf("client %d: %d, %v; want %d", i, got, err, n+1)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestFaultWire(t *testing.T) {
	w := faultwire.New(t, faultwire.Options{Seed: 1})
	serve(t, w.B, xdpfab.DomainAttr{})
	r := word(t, open(t, w.A, xdpfab.DomainAttr{}), w.B.MAC.String(), 0)
	w.SetBoth(faultwire.Faults{Loss: 0.05, Duplicate: 0.05, Reorder: 0.05, Corrupt: 0.05})
	count(t, r, 0, times)
	if s := w.Stats(); s.Total(faultwire.Lost) == 0 || s.Total(faultwire.Duplicated) == 0 {
		t.Errorf("the wire was too good: %v", s)
	}
}

// An 802.1Q interface has only generic XDP, which has to be asked for.
func TestVLAN(t *testing.T) {
	p := testnet.NewVLAN(t, 77, testnet.Options{})
	err := p.A.Do(func() error {
		d, err := xdpfab.Open(limited(t), p.A.IfName, xdpfab.DomainAttr{})
		if err == nil {
			_ = d.CloseAll()
		}
		return err
	})
	if err == nil || !contains(err, "no native XDP") {
		t.Errorf("native XDP on %s: %v", p.A.IfName, err)
	}
	attr := xdpfab.DomainAttr{XDP: fi.XDPAny}
	serve(t, p.B, attr)
	d := open(t, p.A, attr)
	count(t, word(t, d, p.B.MAC.String(), 0), 0, times)
	count(t, word(t, d, p.B.IP4.String(), 1), 0, times)
}

// Two subnets: only UDP gets from one to the other.
func TestRouted(t *testing.T) {
	r := testnet.NewRouted(t, testnet.Options{})
	attr := xdpfab.DomainAttr{}
	serve(t, r.B, attr)
	d := open(t, r.A, attr)
	for i, ip := range []netip.Addr{r.B.IP4, r.B.IP6} {
		count(t, word(t, d, ip.String(), uint64(i)), 0, times)
	}
}

// netem works on packets that a kernel forwards: here, on all of them.
func TestRoutedDisturbed(t *testing.T) {
	r := testnet.NewRouted(t, testnet.Options{})
	attr := xdpfab.DomainAttr{}
	serve(t, r.B, attr)
	w := word(t, open(t, r.A, attr), r.B.IP4.String(), 0)
	disturb(t, r.Disturb, netlink.NetemQdiscAttrs{Latency: 2000, Jitter: 1000, Loss: 5, Duplicate: 5, ReorderProb: 25, ReorderCorr: 50, CorruptProb: 2, Limit: 1000})
	begin := time.Now()
	count(t, w, 0, times)
	if took := time.Since(begin); took < times*2*time.Millisecond {
		t.Errorf("%d round trips over a delay of 1 to 3 ms each way took %v: nothing was delayed", times, took)
	}
}

// Nor does a VLAN bypass it: packets that generic XDP sends there go through the
// queueing discipline of the interface below.
func TestVLANDisturbed(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	for _, s := range []*testnet.Side{p.A, p.B} {
		disturb(t, s.Disturb, netlink.NetemQdiscAttrs{Latency: 2000, Loss: 2, Duplicate: 2, Limit: 1000})
		if err := s.Tag(77); err != nil {
			t.Fatal(err)
		}
	}
	attr := xdpfab.DomainAttr{XDP: fi.XDPAny}
	serve(t, p.B, attr)
	w := word(t, open(t, p.A, attr), p.B.MAC.String(), 0)
	begin := time.Now()
	count(t, w, 0, times)
	if took := time.Since(begin); took < times*4*time.Millisecond {
		t.Errorf("%d round trips over a delay of 2 ms each way took %v: nothing was delayed", times, took)
	}
}

// netem does not work on frames that AF_XDP sockets send on the same interface:
// all of the kernel's own datagrams get lost, and none of xdpfab's.
func TestQueueingDisciplineIsBypassed(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	serve(t, p.B, xdpfab.DomainAttr{})
	d := open(t, p.A, xdpfab.DomainAttr{})
	disturb(t, p.A.Disturb, netlink.NetemQdiscAttrs{Loss: 100, Limit: 1000})
	count(t, word(t, d, p.B.MAC.String(), 0), 0, times)

	at := net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.B.IP4, 9))
	var in *net.UDPConn
	var out net.Conn
	err := errors.Join(
		p.B.Do(func() (err error) { in, err = net.ListenUDP("udp", at); return }),
		p.A.Do(func() (err error) { out, err = net.DialUDP("udp", nil, at); return }),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer out.Close()
	for range 20 {
		_, _ = out.Write([]byte("lost"))
	}
	_ = in.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if n, _, err := in.ReadFrom(make([]byte, 16)); err == nil {
		t.Errorf("%d bytes of the kernel's own arrived through netem that loses everything", n)
	}
}

// disturb applies netem; the test is skipped where the kernel has none.
func disturb(t *testing.T, apply func(netlink.NetemQdiscAttrs) error, n netlink.NetemQdiscAttrs) {
	t.Helper()
	err := apply(n)
	if errors.Is(err, veth.ErrNoNetem) {
		testnet.SkipUnlessVM(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}
}
