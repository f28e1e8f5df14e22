// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"net"
	"strings"
	"testing"
)

// jumbo tells of an MTU at which packets lie in several buffers: zero-copy, of which a
// packet may have one alone, is refused with the MTU that would do; and long frames were
// joined on their way, not given up.
func (p *nicPair) jumbo(t *testing.T) {
	p.cannot(t, []string{"is too large for zero-copy with the driver", "a packet may have 1 buffers",
		"ip link set dev " + p.net.A.IfName + " mtu 3430"}, "--copy", "zero-copy")
	p.bench(t, p.net.B.IP4.String())
	if n := p.counters(); n["gathered"] == 0 || n["paths_narrow"] != 0 {
		t.Errorf("at an MTU of %d %d packets were joined, and %d paths taken for narrow; want some, and none", p.mtu,
			n["gathered"], n["paths_narrow"])
	}
}

// narrow has the driver drop long packets without a word: virtio_net does so with those
// that meet receive buffers of before its XDP program, as many as traffic without one has
// left in its ring. The path is taken for narrow, and is wide again once these are used
// up, with the same program at work all the time. Each of its operations runs once.
func (p *nicPair) narrow(t *testing.T) {
	p.end()
	p.flood(t)
	p.restart()
	h := host(t, p.net.A)
	before := word(t, p.file)
	a := p.adder(t)
	p.grows(t, a)
	narrow := h.counters()["paths_narrow"] > 0
	if narrow {
		h.eventually("telling that long frames do not pass", func() bool { return strings.Contains(h.err.String(), "do not pass") })
		h.eventually("telling that long frames pass after all", func() bool { return strings.Contains(h.err.String(), "pass now") })
	}
	joined := p.counters()["gathered"]
	p.bench(t, p.addr(), "--op", "put", "--size", "32KiB", "--count", "200")
	if n := p.counters()["gathered"] - joined; n < 10 {
		t.Errorf("%d packets were joined after that; want long frames", n)
	}
	a.signal(enough)
	got := fates(a)
	if grown := word(t, p.file) - before; got.Added != got.Posted || grown != got.Added {
		t.Errorf("account %+v, the memory grew by %d: want every operation to have run once", got, grown)
	}
	if !narrow {
		t.Skip("this driver dropped no long packets, so that no path became wide again")
	}
}

// flood sends the kernel of the daemon's side long packets, which nobody awaits. A driver
// that makes receive buffers as long as what it receives has long ones afterwards.
func (p *nicPair) flood(t *testing.T) {
	t.Helper()
	const headers = 20 + 8
	at := &net.UDPAddr{IP: p.net.B.IP4.AsSlice(), Port: 9}
	c := inside(t, p.net.A, func() (*net.UDPConn, error) { return net.DialUDP("udp", nil, at) })
	defer c.Close()
	datagram := make([]byte, p.mtu-headers)
	for range 2000 {
		_, _ = c.Write(datagram) // the answer is that nobody listens
	}
}
