// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/testnet/veth"
)

// trunk is a pair with an interface of VLAN 100 on top of each side, with addresses of
// its own; the sides as seen there. What A sends has its tags in the frames.
func trunk(t *testing.T) (net *testnet.Pair, a, b *testnet.Side) {
	t.Helper()
	testnet.Require(t)
	net = testnet.NewVeth(t, testnet.Options{})
	var tops []*testnet.Side
	for n, s := range []*testnet.Side{net.A, net.B} {
		try := &netlink.Vlan{LinkAttrs: netlink.LinkAttrs{Name: "veth0.100", ParentIndex: s.IfIndex}, VlanId: 100}
		err := s.Do(func() error { return netlink.LinkAdd(try) })
		if errors.Is(err, unix.EOPNOTSUPP) {
			testnet.SkipUnlessVM(t, fmt.Errorf("%w: %w", veth.ErrNoVLAN, err))
		}
		if err != nil {
			t.Fatal(err)
		}
		top := on(t, s, "veth0.100")
		top.IP4 = netip.MustParseAddr(fmt.Sprintf("10.100.0.%d", n+1))
		top.IP6 = netip.MustParseAddr(fmt.Sprintf("fd00:100::%d", n+1))
		testnet.IP(t, s, addressed(top)...)
		tops = append(tops, top)
	}
	if err := net.A.TagInFrames(); err != nil {
		t.Fatal(err)
	}
	return net, tops[0], tops[1]
}

// addressed are the commands that set a side's VLAN interface up, with its addresses;
// made are those, after the one that makes it.
func addressed(s *testnet.Side) []string {
	return []string{"link set veth0.100 up", "addr add " + s.IP4.String() + "/24 dev veth0.100",
		"addr add " + s.IP6.String() + "/64 dev veth0.100 nodad"}
}

func made(s *testnet.Side) []string {
	return append([]string{"link add link veth0 name veth0.100 type vlan id 100"}, addressed(s)...)
}

// hasVLAN waits until a daemon below serves the addresses of a side's VLAN interface.
func (n *node) hasVLAN(s *testnet.Side) {
	n.t.Helper()
	n.eventually("serving the addresses of veth0.100", func() bool {
		now, err := n.ask()
		return err == nil && now.Interface.Served == s.IP4.String()+"/24 "+s.IP6.String()+"/64" &&
			now.Interface.Above == "veth0.100 (vlan)"
	})
}

// says waits for a daemon's log to contain a text: its socket may answer before.
func (n *node) says(text string) {
	n.t.Helper()
	n.eventually("saying "+text, func() bool { return strings.Contains(n.err.String(), text) })
}

// A daemon on an interface, and one on the 802.1Q interface on top, serve beside each
// other, if tags lie in the frames; and the log of the first says so.
func TestVLANBeside(t *testing.T) {
	net, a, b := trunk(t)
	below := serve(t, net.B, "--region", "below=4KiB")
	above := serve(t, b, "--xdp", "generic", "--region", "above=4KiB")
	more(t, net.A, net.B.IP4.String(), "below", 0)
	more(t, net.A, below.addr(), "below", 5)
	more(t, a, b.IP4.String(), "above", 0, "--xdp", "generic")
	more(t, a, b.MAC.String(), "above", 5, "--xdp", "generic")
	if below.counters()["xdp_pass_vlan"] == 0 {
		t.Errorf("counters: %v; want frames of VLAN 100 passed", below.counters())
	}
	below.says("frames for veth0.100 may come without their tag")
	above.end()
	below.end()
}

// A daemon that serves one VLAN has the addresses of its 802.1Q interface, in native
// mode, and a client there reaches it; an interface that comes later counts as well.
func TestVLANServedBelow(t *testing.T) {
	net, a, b := trunk(t)
	testnet.IP(t, b, "link del veth0.100")
	d := serve(t, net.B, "--vlan", "100", "--region", "r=4KiB")
	d.says("no IP address: peers reach this node by its MAC address alone")
	testnet.IP(t, b, made(b)...)
	d.hasVLAN(b)
	for n, peer := range []string{b.IP4.String(), b.IP6.String(), d.addr()} {
		more(t, a, peer, "r", 5*n, "--xdp", "generic")
	}
	// What the daemon's guests send has the tag, and finds its way by the VLAN's routes.
	far := serve(t, a, "--xdp", "generic", "--region", "far=4KiB")
	hosts.Store(net.B, d)
	t.Cleanup(func() { hosts.Delete(net.B) })
	more(t, net.B, a.IP4.String(), "far", 0)
	more(t, net.B, a.IP6.String(), "far", 5)
	far.end()
	d.end()
}

// When the interface of a VLAN is removed, the daemon that opened it ends, and says why.
// One on the interface below goes on, by its MAC address, and by IP addresses as soon as
// they are back.
func TestVLANRemoved(t *testing.T) {
	net, a, b := trunk(t)
	above := serve(t, b, "--xdp", "generic", "--region", "r=4KiB")
	more(t, a, b.IP6.String(), "r", 0, "--xdp", "generic")
	testnet.IP(t, b, "link del veth0.100")
	above.wants(1)
	above.says("interface veth0.100 is gone, removed or moved")
	testnet.IP(t, b, made(b)...)
	d := serve(t, net.B, "--vlan", "100", "--region", "r=4KiB")
	d.hasVLAN(b)
	sum := 0
	by := func(peers ...string) {
		for _, peer := range peers {
			more(t, a, peer, "r", sum, "--xdp", "generic")
			sum += 5
		}
	}
	by(b.IP4.String(), b.IP6.String())
	testnet.IP(t, b, "link del veth0.100")
	d.eventually("serving no address", func() bool {
		now, err := d.ask()
		return err == nil && now.Interface.Served == "" && now.Interface.Above == ""
	})
	by(d.addr())
	testnet.IP(t, b, made(b)...)
	d.hasVLAN(b)
	by(b.IP4.String(), b.IP6.String(), d.addr())
	d.end()
}
