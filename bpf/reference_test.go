// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"cmp"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

// reference decides about a packet as the program should, written from the wire
// format and not from the program: it slices where the program compares
// pointers. It does not look for a socket; lane is -1 if there is no frame.
func reference(c *Config, packet []byte) (r Reason, lane int) {
	be := binary.BigEndian
	frame, proto, vlan := packet[14:], be.Uint16(packet[12:]), uint16(0)
	if proto == 0x8100 {
		if len(frame) < 4 {
			return PassOther, -1
		}
		proto, vlan, frame = be.Uint16(frame[2:]), be.Uint16(frame)%4096, frame[4:]
	}
	overhead := 0 // bytes of IP and UDP header
	link := func() Reason {
		if [6]byte(packet) != c.MAC {
			return PassMAC
		}
		if c.VLAN != VLANAny && vlan != uint16(c.VLAN) {
			return PassVLAN
		}
		return Redirect
	}
	switch {
	case proto == 0x88b5:
		if r = link(); r == Redirect && packet[6]&1 != 0 {
			r = DropSource
		}
	case proto == 0x0800 && c.UDP:
		overhead = 28
		frame, r = referenceIP(c, frame, referenceIPv4, link, packet[6]&1 != 0 || !referenceSource(frame, 12, 4))
	case proto == 0x86dd && c.UDP:
		overhead = 48
		frame, r = referenceIP(c, frame, referenceIPv6, link, packet[6]&1 != 0 || !referenceSource(frame, 8, 16))
	default:
		r = PassOther
	}
	switch {
	case r != Redirect:
		return r, -1
	case len(frame) < 46:
		return DropShort, -1
	case len(frame)+overhead > cmp.Or(c.MTU, DefaultMTU):
		return DropLong, -1
	case frame[0]&0xf0 != 0x10:
		return DropVersion, -1
	case frame[0]&0x0f == 0:
		return DropType, -1
	}
	return Redirect, int(binary.LittleEndian.Uint32(frame[2:]) >> 26)
}

// referenceIPv4 returns the header's length, the packet's, and the destination;
// any reason but Redirect ends it.
func referenceIPv4(b []byte) (header, total int, dst netip.Addr, r Reason) {
	switch {
	case len(b) < 20 || b[0]>>4 != 4 || b[9] != 17:
		return 0, 0, dst, PassOther
	case b[0]&15 != 5:
		return 0, 0, dst, PassOptions
	case b[6]&0x20 != 0 || b[6]&0x1f != 0 || b[7] != 0:
		return 0, 0, dst, PassFragment
	}
	return 20, int(binary.BigEndian.Uint16(b[2:])), netip.AddrFrom4([4]byte(b[16:])), Redirect
}

func referenceIPv6(b []byte) (header, total int, dst netip.Addr, r Reason) {
	if len(b) < 40 || b[0]>>4 != 6 || b[6] != 17 {
		return 0, 0, dst, PassOther
	}
	return 40, 40 + int(binary.BigEndian.Uint16(b[4:])), netip.AddrFrom16([16]byte(b[24:])), Redirect
}

// referenceSource reports whether the n bytes at an offset are the address of one host.
func referenceSource(b []byte, at, n int) bool {
	if len(b) < at+n {
		return true // it is judged otherwise
	}
	a, _ := netip.AddrFromSlice(b[at : at+n])
	return !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast() && !a.Is4In6() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func referenceIP(c *Config, b []byte, parse func([]byte) (int, int, netip.Addr, Reason),
	link func() Reason, nobody bool) ([]byte, Reason) {
	header, total, dst, r := parse(b)
	if r != Redirect {
		return nil, r
	}
	udp := b[header:]
	if len(udp) < 8 || binary.BigEndian.Uint16(udp[2:]) != DefaultPort {
		return nil, PassOther
	}
	if r := link(); r != Redirect {
		return nil, r
	}
	if !slices.Contains(c.Addrs, dst) {
		return nil, PassAddr
	}
	if nobody {
		return nil, DropSource
	}
	if total > len(b) || int(binary.BigEndian.Uint16(udp[4:])) != total-header {
		return nil, DropUDPLength
	}
	return udp[8:max(8, total-header)], Redirect
}

// compare runs a packet through the program and the reference; see run.
func compare(t *testing.T, p *Program, cfg *Config, packet []byte, at *xdpMD) Reason {
	t.Helper()
	want, lane := reference(cfg, packet)
	if want == Redirect && lane != testLane {
		want = DropNoSocket
	}
	got := run(t, p, packet, at)
	if got != want {
		t.Errorf("got %v, want %v; packet %x", got, want, packet)
	}
	return got
}

// The kernel takes test packets from an Ethernet header to what fits a page with
// head and tail room.
const minTestRun, maxTestRun = 14, 3300

// changed is a packet of any kind, changed in a few places, mostly in its headers, to
// values that are likely to matter. Some are about as long as the MTU, some are cut.
func changed(rng *rand.Rand, mtu int) []byte {
	values := []byte{0, 1, 4, 6, 8, 0x11, 0x12, 0x18, 0x19, 0x20, 0x45, 0x46, 0x60, 0x81, 0x86, 0x88, 0xa8, 0xb5, 0xdd, 0xff}
	size := 44 + rng.IntN(8)
	if rng.IntN(8) == 0 {
		size = mtu - 50 + rng.IntN(60)
	}
	packet := kinds[rng.IntN(len(kinds))].wrap(fab(byte(rng.IntN(10)), size))
	for range rng.IntN(4) {
		at := rng.IntN(min(len(packet), 76))
		switch rng.IntN(3) {
		case 0:
			packet[at] = values[rng.IntN(len(values))]
		case 1:
			packet[at] ^= 1 << rng.IntN(8)
		case 2:
			packet[at] += byte(rng.IntN(3)) - 1
		}
	}
	switch rng.IntN(10) {
	case 0:
		packet = packet[:minTestRun+rng.IntN(len(packet)-minTestRun)]
	case 1:
		packet = append(packet, make([]byte, rng.IntN(20))...)
	}
	return packet
}

// TestAgainstReference compares the program with the reference on changed packets. The
// seed is fixed.
func TestAgainstReference(t *testing.T) {
	for _, policy := range []VLANPolicy{VLANAny, VLANUntagged, testVLAN} {
		t.Run(policy.String(), func(t *testing.T) { againstReference(t, policy) })
	}
}

func againstReference(t *testing.T, policy VLANPolicy) {
	cfg := testConfig()
	cfg.VLAN = policy
	p := mustLoad(t, cfg, 1)
	setSocket(t, p, 0, testLane)
	rounds := 15000
	if testing.Short() {
		rounds = 3000
	}
	var seen [NumReasons]int
	rng := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		packet := changed(rng, testMTU)
		seen[compare(t, p, &cfg, packet, nil)]++
		if t.Failed() {
			return
		}
	}
	for r, n := range seen {
		if r := Reason(r); n == 0 && (r != PassVLAN || policy != VLANAny) && r != Executed { // there is no executor
			t.Errorf("no packet of %d met %v: this test lost its reach", rounds, r)
		}
	}
	t.Logf("packets by reason: %v", seen)
}

// FuzzSteer compares the program with the reference on arbitrary bytes.
func FuzzSteer(f *testing.F) {
	for _, c := range steerCases {
		f.Add(c.edit(slices.Clone(c.from)))
	}
	cfg := testConfig()
	p := mustLoad(f, cfg, 1)
	setSocket(f, p, 0, testLane)
	f.Fuzz(func(t *testing.T, packet []byte) {
		if len(packet) < minTestRun || len(packet) > maxTestRun {
			return
		}
		compare(t, p, &cfg, packet, nil)
	})
}

// FuzzConfig checks that no Config, however odd, gets past validation into
// settings that contradict it.
func FuzzConfig(f *testing.F) {
	f.Add(ourMAC[:], 1500, uint16(0), true, uint16(0), []byte{10, 0, 0, 2})
	f.Add([]byte{1, 2, 3, 4, 5, 6}, -1, uint16(4095), false, uint16(9), []byte{})
	f.Fuzz(func(t *testing.T, mac []byte, mtu int, vlan uint16, udp bool, port uint16, addr []byte) {
		c := Config{MTU: mtu, VLAN: VLANPolicy(vlan), UDP: udp, Port: port}
		copy(c.MAC[:], mac)
		if a, ok := netip.AddrFromSlice(addr); ok {
			c.Addrs = []netip.Addr{a}
		}
		if k, err := keys(c.Addrs); err == nil && len(k) == 1 {
			for a := range k {
				if ip := netip.AddrFrom16(a).Unmap(); ip != c.Addrs[0].Unmap() || ip.IsUnspecified() || ip.IsMulticast() {
					t.Errorf("%v became %v", c.Addrs, ip)
				}
			}
		} else if err == nil && len(c.Addrs) > 0 {
			t.Errorf("%v became %v", c.Addrs, k)
		}
		s, err := c.settings()
		if err != nil {
			return
		}
		if s.Vlan != vlan || vlan >= 4095 && vlan != 1<<16-1 || s.Mtu < MinMTU || s.Mtu > 65535 || c.MAC[0]&1 != 0 || udp != (s.Udp == 1) {
			t.Errorf("%+v became %+v", c, s)
		}
	})
}
