// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A bridge with a MAC address of its own, as systemd and NetworkManager give it one, is
// served by a daemon on its port: by each of its addresses, after they have changed, with
// resident regions, and for what the daemon's guests send. What leaves for its addresses
// leaves from that MAC address.
func TestBridgeOfItsOwnMAC(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewVeth(t, testnet.Options{})
	const first, second = "02:00:00:00:00:99", "02:00:00:00:00:98"
	testnet.IP(t, net.B, "link add br0 address "+first+" type bridge", "link set br0 up", "link set veth0 master br0",
		"addr flush dev veth0", "addr add "+net.B.IP4.String()+"/24 dev br0", "addr add "+net.B.IP6.String()+"/64 dev br0 nodad")
	d := serve(t, net.B, "--region", "r=4KiB", "--region", "hot=4KiB:resident", "--pin", "none")
	sum := 0
	by := func(peers ...string) {
		t.Helper()
		for _, peer := range peers {
			more(t, net.A, peer, "r", sum)
			more(t, net.A, peer, "hot", sum)
			sum += 5
		}
	}
	by(net.B.IP4.String(), net.B.IP6.String(), first, net.B.MAC.String())
	more(t, net.A, net.B.IP4.String(), "r", sum, "--transport", "udp")
	if d.counters()["resident_ops_executed"] == 0 {
		t.Errorf("counters: %v; want operations of the program", d.counters())
	}
	silent(t, net.A, second)
	testnet.IP(t, net.B, "link set br0 address "+second)
	d.eventually("serving the new address", func() bool {
		return xdpfab(t, net.A, []string{"ping", second, "-i", net.A.IfName, "--count", "1", "--timeout", brief}).code() == 0
	})
	silent(t, net.A, first)
	testnet.IP(t, net.A, "neigh flush dev veth0")
	more(t, net.A, net.B.IP4.String(), "r", sum+5)
	more(t, net.A, second, "hot", sum)
	d.end()
	far := serve(t, net.A, "--region", "far=4KiB")
	host(t, net.B)
	more(t, net.B, net.A.IP4.String(), "far", 0)
	more(t, net.B, far.addr(), "far", 5)
	far.end()
}

// The same without UDP, for a bridge that the port joins later: raw frames to it come to
// the daemon.
func TestBridgeOfItsOwnMACRaw(t *testing.T) {
	testnet.Require(t)
	net := testnet.NewVeth(t, testnet.Options{})
	d := serve(t, net.B, "--udp=false", "--region", "r=4KiB")
	const bridge = "02:00:00:00:00:99"
	silent(t, net.A, bridge)
	testnet.IP(t, net.B, "link add br0 address "+bridge+" type bridge", "link set br0 up", "link set veth0 master br0")
	d.eventually("serving the bridge's address", func() bool {
		return xdpfab(t, net.A, []string{"ping", bridge, "-i", net.A.IfName, "--count", "1", "--timeout", brief}).code() == 0
	})
	more(t, net.A, bridge, "r", 0)
	d.end()
}
