// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A daemon that serves UDP takes the place of one that does not, beside resident regions,
// under load: what was there goes on, and IP addresses work from then on. What is kept
// when it is killed needs UDP, too.
func TestTakeoverAddsUDP(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	d, _, flags := pinned(t, net.B)
	d.end()
	ethernet := append(slices.Clone(flags), "--udp=false")
	d = launch(t, net.B, d.socket, ethernet...)
	d.ready()
	host(t, net.A)
	var adders []*process
	var progress []func() uint64
	add := func(region, peer string) {
		p, added := startAdding(t, net.A, d, "-region", region, "-peer", peer)
		p.eventually("adding to "+region, func() bool { return added() > 0 })
		adders, progress = append(adders, p), append(progress, added)
	}
	add("r", d.addr())
	add("hot", d.addr())
	if s, err := d.ask(); err != nil || s.Interface.UDP {
		t.Fatalf("the first daemon serves UDP: %+v, %v", s.Interface, err)
	}
	next := launch(t, net.B, d.socket, append(flags, "--takeover")...)
	next.ready()
	d.wants(0)
	next.says("UDP is served from here on")
	d = next
	add("r", net.B.IP4.String())
	add("hot", net.B.IP4.String())
	for i, added := range progress {
		was := added()
		adders[i].eventually("going on", func() bool { return added() > was })
	}
	start(t, net.B, xdpfabdPath, append(ethernet, "--takeover", "--interface", net.B.IfName, "--control", d.socket)).
		wants(1, "has udp = true, and its sessions over UDP could not go on", "that daemon continues")
	sums := map[string]uint64{}
	for i, p := range adders {
		sums[[]string{"r", "hot"}[i%2]] += ended(t, p)
	}
	for region, want := range sums {
		if sum := sumOf(t, net.A, d, region); sum != want {
			t.Errorf("%s holds %d, want %d", region, sum, want)
		}
	}
	d.crash()
	start(t, net.B, xdpfabdPath, append(ethernet, "--interface", net.B.IfName, "--control", d.socket)).
		wants(5, "it is of an interface with UDP")
	d = again(t, net.B, d.socket, flags...)
	if sum := sumOf(t, net.A, d, "hot"); sum != sums["hot"] {
		t.Errorf("hot holds %d after a death, want %d", sum, sums["hot"])
	}
	d.end()
}

// What a daemon without UDP has left when it was killed, the next one serves over UDP,
// too.
func TestDeathThenUDP(t *testing.T) {
	net := testnet.NewPair(t, testnet.Options{})
	d, _, flags := pinned(t, net.B)
	d.end()
	d = launch(t, net.B, d.socket, append(slices.Clone(flags), "--udp=false")...)
	d.ready()
	add := func(peer string, want uint64) {
		t.Helper()
		p := xdpfab(t, net.A, []string{"atomic", "sum", "uint64", "7", "-q", "-i", net.A.IfName, "--peer", peer, "--region", "hot"})
		p.wants(0)
		if sum := sumOf(t, net.A, d, "hot"); sum != want {
			t.Errorf("hot holds %d, want %d", sum, want)
		}
	}
	add(d.addr(), 7)
	d.crash()
	d = again(t, net.B, d.socket, flags...)
	add(d.addr(), 14)
	add(net.B.IP4.String(), 21)
	d.end()
}
