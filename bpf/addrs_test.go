// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// The addresses served follow SetAddrs while the program runs.
func TestSetAddrs(t *testing.T) {
	p := mustLoad(t, Config{MAC: ourMAC, UDP: true}, 1)
	setSocket(t, p, 0, testLane)
	frame := fab(3, 46)
	other := netip.MustParseAddr("10.9.9.9")
	mapped := netip.MustParseAddr("::ffff:10.0.0.2")
	for _, c := range []struct {
		name  string
		addrs []netip.Addr
		yes   []netip.Addr
		no    []netip.Addr
	}{
		{"none", nil, nil, []netip.Addr{ourIPv4, ourIPv6, other}},
		{"IPv4", []netip.Addr{ourIPv4}, []netip.Addr{ourIPv4}, []netip.Addr{ourIPv6, other, mapped}},
		{"IPv4, by its mapped form", []netip.Addr{mapped}, []netip.Addr{ourIPv4}, []netip.Addr{mapped}},
		{"both", []netip.Addr{ourIPv4, ourIPv6, ourIPv4}, []netip.Addr{ourIPv4, ourIPv6}, []netip.Addr{other}},
		{"another", []netip.Addr{ourIPv6, other}, []netip.Addr{ourIPv6, other}, []netip.Addr{ourIPv4}},
		{"as many as can be", append(many(MaxAddrs-1), other), []netip.Addr{other, many(2)[0], many(2)[1]}, []netip.Addr{ourIPv4, ourIPv6}},
		{"as many others", append(many(2 * MaxAddrs)[MaxAddrs+1:], ourIPv4), []netip.Addr{ourIPv4}, []netip.Addr{other, many(1)[0]}},
		{"none again", nil, nil, []netip.Addr{ourIPv4, ourIPv6, other}},
	} {
		if err := p.SetAddrs(c.addrs); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		check := func(a netip.Addr, want Reason) {
			t.Helper()
			packet := udp6To(a, frame)
			if a.Is4() {
				packet = udp4To(a, frame)
			}
			if got := run(t, p, packet, nil); got != want {
				t.Errorf("%s: %v to %v, want %v", c.name, got, a, want)
			}
		}
		for _, a := range c.yes {
			check(a, Redirect)
		}
		for _, a := range c.no {
			check(a, PassAddr)
		}
	}
}

func TestSetAddrsRefuses(t *testing.T) {
	p := mustLoad(t, Config{MAC: ourMAC, UDP: true, Addrs: []netip.Addr{ourIPv4}}, 1)
	setSocket(t, p, 0, testLane)
	for want, addrs := range map[string][]netip.Addr{
		"unicast": {netip.MustParseAddr("ff02::1")}, "at most 1024": many(MaxAddrs + 1),
	} {
		if err := p.SetAddrs(addrs); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error about %q", err, want)
		}
	}
	if got := run(t, p, udp4Packet(fab(3, 46)), nil); got != Redirect {
		t.Errorf("%v: a refused list changed what is served", got)
	}
	raw := mustLoad(t, Config{MAC: ourMAC}, 1)
	if err := raw.SetAddrs([]netip.Addr{ourIPv4}); err == nil || !strings.Contains(err.Error(), "Config.UDP") {
		t.Errorf("without UDP: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := p.SetAddrs(nil); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
