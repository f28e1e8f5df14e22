// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// enslave makes a side's interface a port of a bridge, which gets the addresses, as an
// installer does it: with the MAC address of the port.
func enslave(t testing.TB, side *testnet.Side) {
	t.Helper()
	testnet.IP(t, side, "link add br0 address "+side.MAC.String()+" type bridge", "link set br0 up",
		"link set veth0 master br0", "addr flush dev veth0", "addr add "+side.IP4.String()+"/24 dev br0",
		"addr add "+side.IP6.String()+"/64 dev br0 nodad")
}

// addresses are those that a Resolver lists, without link-local ones.
func addresses(t testing.TB, r *Resolver) []netip.Addr {
	t.Helper()
	list, err := r.Addrs()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(list, netip.Addr.IsLinkLocalUnicast)
}

// Addresses, routes and neighbours of a bridge are those of its port; and no longer, once
// the port has left it.
func TestPortOfBridge(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	r := resolver(t, p.A) // before: the interface may get a master later
	enslave(t, p.A)
	if got, want := addresses(t, r), []netip.Addr{p.A.IP4, p.A.IP6}; !slices.Equal(got, want) {
		t.Fatalf("addresses %v, want those of the bridge, %v", got, want)
	}
	for _, c := range []struct{ dst, src netip.Addr }{{p.B.IP4, p.A.IP4}, {p.B.IP6, p.A.IP6}} {
		hop, err := r.Resolve(context.Background(), c.dst)
		if err != nil || hop.MAC != wire.MAC(p.B.MAC) || hop.Source != c.src || hop.via == p.A.IfIndex {
			t.Errorf("%v: %+v, %v; want a neighbour of the bridge", c.dst, hop, err)
		}
		if known, err := r.Neighbours(); err != nil || known[c.dst] != wire.MAC(p.B.MAC) {
			t.Errorf("neighbours %v, %v: want %v", known, err, c.dst)
		}
		if err := r.Ask(c.dst); err != nil {
			t.Errorf("asking for %v: %v", c.dst, err)
		}
	}
	uppers, err := r.Uppers()
	if err != nil || len(uppers) != 1 || uppers[0].Name != "br0" || uppers[0].Kind != "bridge" || uppers[0].Foreign || len(r.MACs()) != 0 {
		t.Errorf("above: %+v, %v", uppers, err)
	}
	testnet.IP(t, p.A, "link set veth0 nomaster")
	if got := addresses(t, r); len(got) != 0 {
		t.Errorf("addresses %v of a bridge that was left", got)
	}
	if _, err := r.Resolve(context.Background(), p.B.IP4); !errors.Is(err, ErrNoRoute) {
		t.Errorf("by a bridge that was left: %v", err)
	}
}

// Packets to a bridge with a MAC address of its own come to it, and those of its
// addresses leave from it.
func TestBridgeOfAnotherMAC(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	enslave(t, p.A)
	testnet.IP(t, p.A, "link set br0 address 02:00:00:00:00:99")
	r := resolver(t, p.A)
	if got, want := addresses(t, r), []netip.Addr{p.A.IP4, p.A.IP6}; !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	bridge := wire.MAC{2, 0, 0, 0, 0, 0x99}
	if got := r.MACs(); !slices.Equal(got, []wire.MAC{bridge}) {
		t.Errorf("MAC addresses %v, want %v", got, bridge)
	}
	if hop := resolve(t, r, p.B.IP4.String()); hop.Local != bridge || hop.Source != p.A.IP4 {
		t.Errorf("the way to the other end is %+v, want from %v", hop, bridge)
	}
	testnet.IP(t, p.A, "link set veth0 nomaster")
	if got := addresses(t, r); len(got)+len(r.MACs()) != 0 {
		t.Errorf("addresses %v, %v of a bridge that was left", got, r.MACs())
	}
}

// Changes of the interfaces above are told: that there is one, and their addresses and
// neighbours.
func TestMonitorFollowsUppers(t *testing.T) {
	p := testnet.NewPair(t, testnet.Options{})
	r := resolver(t, p.A)
	var m *Monitor
	if err := p.A.Do(func() (err error) { m, err = r.Monitor(); return err }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	enslave(t, p.A)
	await(t, m, "a master", func(c Change) bool { return c.Link && c.Addrs && c.Routes && len(addresses(t, r)) == 2 })
	testnet.IP(t, p.A, "addr add 10.88.0.1/24 dev br0")
	await(t, m, "an address of the bridge", func(c Change) bool { return c.Addrs && !c.Link && len(addresses(t, r)) == 3 })
	testnet.IP(t, p.A, "neigh add 10.77.0.7 lladdr 02:00:00:00:00:07 dev br0")
	await(t, m, "a neighbour of the bridge", func(c Change) bool {
		return c.Valid[addr("10.77.0.7")] == wire.MAC{2, 0, 0, 0, 0, 7}
	})
	testnet.IP(t, p.A, "link set br0 address 02:00:00:00:00:99")
	await(t, m, "another MAC address", func(c Change) bool { return c.Addrs && len(addresses(t, r)) == 3 && len(r.MACs()) == 1 })
}
