// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/cilium/ebpf/btf"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// set returns an edit: the byte at off becomes v.
func set(off int, v ...byte) func([]byte) []byte {
	return func(b []byte) []byte { copy(b[off:], v); return b }
}

// insert returns an edit that puts bytes in at off.
func insert(off int, v ...byte) func([]byte) []byte {
	return func(b []byte) []byte {
		return append(append(append([]byte(nil), b[:off]...), v...), b[off:]...)
	}
}

func same(b []byte) []byte { return b }

// steerCases are packets, each a valid one with at most one change.
var steerCases = []struct {
	name string
	from []byte
	edit func([]byte) []byte
	want Reason
}{
	{"raw", rawPacket(fab(3, 46)), same, Redirect},
	{"udp4", udp4Packet(fab(3, 46)), same, Redirect},
	{"udp6", udp6Packet(fab(3, 46)), same, Redirect},
	{"last IPv4 address", udp4To(lastIPv4, fab(3, 46)), same, Redirect},
	{"last IPv6 address", udp6To(lastIPv6, fab(3, 46)), same, Redirect},
	{"vlan", tagged(0x8100, rawPacket(fab(3, 46))), same, Redirect},
	{"unknown flags are userspace's", rawPacket(fab(3, 46)), set(15, 0xff), Redirect},
	{"wrong CRC is userspace's", rawPacket(fab(3, 46)), set(44, 1, 2, 3, 4), Redirect},

	{"other EtherType", rawPacket(fab(3, 46)), set(12, 0x88, 0xb6), PassOther},
	{"ARP", rawPacket(fab(3, 46)), set(12, 0x08, 0x06), PassOther},
	{"802.3 length", rawPacket(fab(3, 46)), set(12, 0, 46), PassOther},
	{"802.1ad", tagged(0x88a8, rawPacket(fab(3, 46))), same, PassOther},
	{"two 802.1Q tags", tagged(0x8100, tagged(0x8100, rawPacket(fab(3, 46)))), same, PassOther},
	{"802.1ad around 802.1Q", tagged(0x88a8, tagged(0x8100, rawPacket(fab(3, 46)))), same, PassOther},
	{"TCP over IPv4", udp4Packet(fab(3, 46)), set(23, 6), PassOther},
	{"ICMP", udp4Packet(fab(3, 46)), set(23, 1), PassOther},
	{"IPv4 with version 6", udp4Packet(fab(3, 46)), set(14, 0x65), PassOther},
	{"TCP over IPv6", udp6Packet(fab(3, 46)), set(20, 6), PassOther},
	{"ICMPv6", udp6Packet(fab(3, 46)), set(20, 58), PassOther},
	{"IPv6 with version 4", udp6Packet(fab(3, 46)), set(14, 0x40), PassOther},
	{"IPv6 hop-by-hop", udp6Packet(fab(3, 46)), set(20, 0), PassOther},
	{"IPv6 routing header", udp6Packet(fab(3, 46)), set(20, 43), PassOther},
	{"IPv6 fragment header", udp6Packet(fab(3, 46)), set(20, 44), PassOther},
	{"IPv6 destination options", udp6Packet(fab(3, 46)), set(20, 60), PassOther},
	{"UDP to another port", udp4Packet(fab(3, 46)), set(37, 0xb6), PassOther},
	{"UDP from our port", udp4Packet(fab(3, 46)), set(34, 0x88, 0xb5, 0, 53), PassOther},
	{"UDP over IPv6 to another port", udp6Packet(fab(3, 46)), set(56, 0, 53), PassOther},

	{"IPv4 options", udp4Packet(fab(3, 46)), func(b []byte) []byte {
		return insert(34, 1, 1, 1, 0)(set(14, 0x46)(b))
	}, PassOptions},
	{"IPv4 header length below 5", udp4Packet(fab(3, 46)), set(14, 0x44), PassOptions},
	{"first fragment", udp4Packet(fab(3, 46)), set(20, 0x20, 0), PassFragment},
	{"later fragment", udp4Packet(fab(3, 46)), set(20, 0, 1), PassFragment},
	{"last fragment", udp4Packet(fab(3, 46)), set(20, 0x1f, 0xff), PassFragment},
	{"don't fragment is none", udp4Packet(fab(3, 46)), set(20, 0x40, 0), Redirect},
	{"reserved bit is none", udp4Packet(fab(3, 46)), set(20, 0x80, 0), Redirect},

	{"raw to another MAC", rawPacket(fab(3, 46)), set(5, 0x0c), PassMAC},
	{"raw, first byte of MAC", rawPacket(fab(3, 46)), set(0, 0x06), PassMAC},
	{"raw, middle of MAC", rawPacket(fab(3, 46)), set(3, 1), PassMAC},
	{"raw broadcast", rawPacket(fab(3, 46)), set(0, 255, 255, 255, 255, 255, 255), PassMAC},
	{"raw multicast", rawPacket(fab(3, 46)), set(0, 3), PassMAC},
	{"udp4 to another MAC", udp4Packet(fab(3, 46)), set(5, 0x0c), PassMAC},
	{"udp6 to another MAC", udp6Packet(fab(3, 46)), set(5, 0x0c), PassMAC},
	{"udp4 to another host", udp4Packet(fab(3, 46)), set(33, 3), PassAddr},
	{"udp4 broadcast address", udp4Packet(fab(3, 46)), set(30, 255, 255, 255, 255), PassAddr},
	{"udp4 to the unused slots' zero", udp4Packet(fab(3, 46)), set(30, 0, 0, 0, 0), PassAddr},
	{"udp6 to another host", udp6Packet(fab(3, 46)), set(53, 3), PassAddr},
	{"udp6, first word differs", udp6Packet(fab(3, 46)), set(38, 0xfe), PassAddr},
	{"udp6, second word differs", udp6Packet(fab(3, 46)), set(42, 1), PassAddr},
	{"udp6, third word differs", udp6Packet(fab(3, 46)), set(46, 1), PassAddr},

	{"raw from a group", rawPacket(fab(3, 46)), set(6, 3), DropSource},
	{"raw from everybody", rawPacket(fab(3, 46)), set(6, 255, 255, 255, 255, 255, 255), DropSource},
	{"tagged from a group", tagged(0x8100, rawPacket(fab(3, 46))), set(6, 1), DropSource},
	{"udp4 from a group", udp4Packet(fab(3, 46)), set(6, 1), DropSource},
	{"udp6 from a group", udp6Packet(fab(3, 46)), set(6, 1), DropSource},
	{"udp4 from no address", udp4Packet(fab(3, 46)), set(26, 0, 0, 0, 0), DropSource},
	{"udp4 from loopback", udp4Packet(fab(3, 46)), set(26, 127, 0, 0, 1), DropSource},
	{"udp4 from multicast", udp4Packet(fab(3, 46)), set(26, 239, 1, 1, 1), DropSource},
	{"udp4 from broadcast", udp4Packet(fab(3, 46)), set(26, 255, 255, 255, 255), DropSource},
	{"udp4 from 128.0.0.1", udp4Packet(fab(3, 46)), set(26, 128, 0, 0, 1), Redirect},
	{"udp4 from 240.0.0.1", udp4Packet(fab(3, 46)), set(26, 240, 0, 0, 1), Redirect},
	{"udp6 from no address", udp6Packet(fab(3, 46)), set(22, make([]byte, 16)...), DropSource},
	{"udp6 from loopback", udp6Packet(fab(3, 46)), set(22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1), DropSource},
	{"udp6 from ::2", udp6Packet(fab(3, 46)), set(22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2), Redirect},
	{"udp6 from multicast", udp6Packet(fab(3, 46)), set(22, 0xff), DropSource},
	{"udp6 from an IPv4 address", udp6Packet(fab(3, 46)), set(22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1), DropSource},
	{"udp4 from a group to another host", udp4Packet(fab(3, 46)), func(b []byte) []byte {
		return set(33, 3)(set(6, 1)(b))
	}, PassAddr},

	{"udp4 length short", udp4Packet(fab(3, 46)), set(39, 53), DropUDPLength},
	{"udp4 length long", udp4Packet(fab(3, 46)), set(39, 55), DropUDPLength},
	{"udp4 length zero", udp4Packet(fab(3, 46)), set(39, 0), DropUDPLength},
	{"udp6 length zero", udp6Packet(fab(3, 46)), set(59, 0), DropUDPLength},
	{"IPv4 total length", udp4Packet(fab(3, 46)), set(17, 75), DropUDPLength},
	{"IPv4 total length, high byte", udp4Packet(fab(3, 46)), set(16, 1), DropUDPLength},
	{"IPv6 payload length", udp6Packet(fab(3, 46)), set(19, 53), DropUDPLength},
	{"IPv6 jumbogram", udp6Packet(fab(3, 46)), set(18, 0, 0), DropUDPLength},
	{"lengths agree on less than a UDP header", udp4Packet(fab(3, 46)), func(b []byte) []byte {
		return set(38, 0, 4)(set(16, 0, 24)(b))
	}, DropShort},
	{"lengths agree on less than a frame", udp4Packet(fab(3, 46)), func(b []byte) []byte {
		return set(38, 0, 53)(set(16, 0, 73)(b))
	}, DropShort},
	{"lengths agree on more than the packet", udp6Packet(fab(3, 46)), func(b []byte) []byte {
		return set(58, 0, 55)(set(18, 0, 55)(b))
	}, DropUDPLength},
	{"trailer after udp4", append(udp4Packet(fab(3, 46)), 1, 2, 3, 4), same, Redirect},
	{"trailer after udp6", append(udp6Packet(fab(3, 46)), 1), same, Redirect},
	{"trailer does not make a frame longer", append(udp4Packet(fab(3, 45)), 0), same, DropShort},
	{"trailer does not make a frame too long", append(udp6Packet(fab(3, testMTU-48)), 0), same, Redirect},

	{"raw, 45 bytes", rawPacket(fab(3, 45)), same, DropShort},
	{"raw, empty", rawPacket(nil), same, DropShort},
	{"udp4, 45 bytes", udp4Packet(fab(3, 45)), same, DropShort},
	{"udp4, empty", udp4Packet(nil), same, DropShort},
	{"udp6, 45 bytes", udp6Packet(fab(3, 45)), same, DropShort},
	{"vlan raw, 45 bytes", tagged(0x8100, rawPacket(fab(3, 45))), same, DropShort},
	{"raw, largest", rawPacket(fab(3, testMTU)), same, Redirect},
	{"vlan raw, largest", tagged(0x8100, rawPacket(fab(3, testMTU))), same, Redirect},
	{"udp4, largest", udp4Packet(fab(3, testMTU-28)), same, Redirect},
	{"udp6, largest", udp6Packet(fab(3, testMTU-48)), same, Redirect},
	{"raw, too long", rawPacket(fab(3, testMTU+1)), same, DropLong},
	{"vlan raw, too long", tagged(0x8100, rawPacket(fab(3, testMTU+1))), same, DropLong},
	{"udp4, too long", udp4Packet(fab(3, testMTU-27)), same, DropLong},
	{"udp6, too long", udp6Packet(fab(3, testMTU-47)), same, DropLong},

	{"no socket in this lane", rawPacket(fab(3, 46)), set(19, (testLane+1)<<2), DropNoSocket},
	{"no socket in lane 0", udp4Packet(fab(3, 46)), set(47, 0), DropNoSocket},
	{"no socket in lane 63", udp6Packet(fab(3, 46)), set(67, 0xff), DropNoSocket},
	{"queue bits do not steer", rawPacket(fab(3, 46)), set(16, 0xff, 0xff, 0xff, testLane<<2|3), Redirect},
}

func TestSteer(t *testing.T) {
	p := mustLoad(t, testConfig(), 1)
	setSocket(t, p, 0, testLane)
	var seen [NumReasons]bool
	for _, c := range steerCases {
		t.Run(c.name, func(t *testing.T) {
			got := run(t, p, c.edit(append([]byte(nil), c.from...)), nil)
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			seen[got] = true
		})
	}
	// These have tests of their own below.
	seen[DropVersion], seen[DropType], seen[PassVLAN], seen[Executed] = true, true, true, true
	for r, s := range seen {
		if !s {
			t.Errorf("no packet was counted as %v", Reason(r))
		}
	}
}

func TestVersionAndType(t *testing.T) {
	p := mustLoad(t, testConfig(), 1)
	setSocket(t, p, 0, testLane)
	for _, k := range kinds {
		for b := range 256 {
			frame := fab(3, 46)
			frame[0] = byte(b)
			want := Redirect
			if version, typ := b>>4, b&15; version != 1 {
				want = DropVersion
			} else if typ == 0 {
				want = DropType
			}
			if got := run(t, p, k.wrap(frame), nil); got != want {
				t.Errorf("%s, first byte %#02x: got %v, want %v", k.name, b, got, want)
			}
		}
	}
}

// Every length of every kind of packet; the kernel's test runs begin at an
// Ethernet header.
func TestTruncated(t *testing.T) {
	p := mustLoad(t, testConfig(), 1)
	setSocket(t, p, 0, testLane)
	for _, k := range kinds {
		whole := k.wrap(fab(4, 100))
		for n := 14; n <= len(whole); n++ {
			want := Redirect
			switch {
			case n < k.header:
				want = PassOther
			case k.ip && n < len(whole):
				want = DropUDPLength
			case n < k.header+46:
				want = DropShort
			}
			if got := run(t, p, whole[:n:n], nil); got != want {
				t.Errorf("%s cut to %d of %d bytes: got %v, want %v", k.name, n, len(whole), got, want)
			}
		}
	}
}

func TestConfigMatters(t *testing.T) {
	udpOff := testConfig()
	udpOff.UDP = false
	untagged, one := testConfig(), testConfig()
	untagged.VLAN, one.VLAN = VLANUntagged, testVLAN
	port := testConfig()
	port.Port = 4000
	onlyIPv4 := Config{MAC: ourMAC, UDP: true, Addrs: []netip.Addr{ourIPv4}}
	onlyIPv6 := Config{MAC: ourMAC, UDP: true, Addrs: []netip.Addr{ourIPv6}}
	jumbo := Config{MAC: ourMAC, MTU: 3000}
	small := Config{MAC: ourMAC, MTU: 256}
	frame := fab(3, 46)
	for _, c := range []struct {
		name   string
		cfg    Config
		packet []byte
		want   Reason
	}{
		{"UDP off: raw", udpOff, rawPacket(frame), Redirect},
		{"UDP off: udp4", udpOff, udp4Packet(frame), PassOther},
		{"UDP off: udp6", udpOff, udp6Packet(frame), PassOther},
		{"UDP off: udp4 to port 0", udpOff, set(36, 0, 0)(udp4Packet(frame)), PassOther},
		{"UDP off: udp6 to port 0", udpOff, set(56, 0, 0)(udp6Packet(frame)), PassOther},
		{"UDP off: fragment", udpOff, set(20, 0x20, 0)(udp4Packet(frame)), PassOther},
		{"untagged only: untagged", untagged, rawPacket(frame), Redirect},
		{"untagged only: raw", untagged, tagged(0x8100, rawPacket(frame)), PassVLAN},
		{"untagged only: udp4", untagged, tagged(0x8100, udp4Packet(frame)), PassVLAN},
		{"untagged only: udp6", untagged, tagged(0x8100, udp6Packet(frame)), PassVLAN},
		{"untagged only: others' MAC", untagged, set(5, 1)(tagged(0x8100, rawPacket(frame))), PassMAC},
		{"untagged only: others' traffic", untagged, set(41, 53)(tagged(0x8100, udp4Packet(frame))), PassOther},
		{"untagged only: two tags", untagged, tagged(0x8100, tagged(0x8100, rawPacket(frame))), PassOther},
		{"untagged only: priority", untagged, taggedAs(0x8100, 0, rawPacket(frame)), Redirect},
		{"untagged only: priority, udp4", untagged, taggedAs(0x8100, 0, udp4Packet(frame)), Redirect},
		{"untagged only: priority, udp6", untagged, taggedAs(0x8100, 0, udp6Packet(frame)), Redirect},
		{"untagged only: VLAN 1", untagged, taggedAs(0x8100, 1, rawPacket(frame)), PassVLAN},
		{"untagged only: VLAN 2048", untagged, taggedAs(0x8100, 2048, rawPacket(frame)), PassVLAN},
		{"one VLAN: raw", one, tagged(0x8100, rawPacket(frame)), Redirect},
		{"one VLAN: udp4", one, tagged(0x8100, udp4Packet(frame)), Redirect},
		{"one VLAN: udp6", one, tagged(0x8100, udp6Packet(frame)), Redirect},
		{"one VLAN: untagged", one, rawPacket(frame), PassVLAN},
		{"one VLAN: untagged, udp4", one, udp4Packet(frame), PassVLAN},
		{"one VLAN: priority", one, taggedAs(0x8100, 0, rawPacket(frame)), PassVLAN},
		{"one VLAN: another", one, taggedAs(0x8100, testVLAN+256, rawPacket(frame)), PassVLAN},
		{"own port: default", port, udp4Packet(frame), PassOther},
		{"own port: match", port, set(36, 4000>>8, 4000&255)(udp4Packet(frame)), Redirect},
		{"IPv4 alone: udp4", onlyIPv4, udp4Packet(frame), Redirect},
		{"IPv4 alone: udp6", onlyIPv4, udp6Packet(frame), PassAddr},
		{"IPv4 alone: udp6 to ::", onlyIPv4, udp6To(netip.IPv6Unspecified(), frame), PassAddr},
		{"IPv6 alone: udp6", onlyIPv6, udp6Packet(frame), Redirect},
		{"IPv6 alone: udp4", onlyIPv6, udp4Packet(frame), PassAddr},
		{"IPv6 alone: udp4 to 0", onlyIPv6, udp4To(netip.IPv4Unspecified(), frame), PassAddr},
		{"MTU 3000, fits", jumbo, rawPacket(fab(3, 3000)), Redirect},
		{"MTU 3000, exceeded", jumbo, rawPacket(fab(3, 3001)), DropLong},
		{"MTU 256, fits", small, rawPacket(fab(3, 256)), Redirect},
		{"MTU 256, exceeded", small, rawPacket(fab(3, 257)), DropLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := mustLoad(t, c.cfg, 1)
			setSocket(t, p, 0, testLane)
			if got := run(t, p, c.packet, nil); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// Each lane of each queue has its own slot, and only that.
func TestLaneAndQueue(t *testing.T) {
	const queues = 3
	pair := testnet.NewPair(t, testnet.Options{Queues: queues + 1})
	err := pair.B.Do(func() error {
		p := mustLoad(t, testConfig(), queues)
		at := func(queue, lane int) Reason {
			packet := rawPacket(fab(3, 46))
			packet[19] = byte(lane << 2)
			return run(t, p, packet, &xdpMD{IngressIfindex: uint32(pair.B.IfIndex), RXQueueIndex: uint32(queue)})
		}
		for _, s := range []struct{ queue, lane int }{{0, 0}, {0, 63}, {1, 0}, {1, 17}, {2, 63}} {
			socket := setSocket(t, p, s.queue, s.lane)
			for queue := range queues + 1 { // one more than the program has
				for lane := range Lanes {
					want := DropNoSocket
					if queue == s.queue && lane == s.lane {
						want = Redirect
					}
					if got := at(queue, lane); got != want {
						t.Errorf("socket in %v, frame for {%d %d}: got %v, want %v", s, queue, lane, got, want)
					}
				}
			}
			// Clearing a slot and closing its socket both empty it.
			if s.lane == 0 {
				if err := p.ClearSocket(s.queue, s.lane); err != nil {
					t.Error(err)
				}
			} else if err := socket.Close(); err != nil {
				t.Error(err)
			}
			if got := at(s.queue, s.lane); got != DropNoSocket {
				t.Errorf("slot %v emptied: got %v, want %v", s, got, DropNoSocket)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// The names in Go are those of the C enum in the object's type information.
func TestReasonsAgreeWithC(t *testing.T) {
	spec, err := loadSteer()
	if err != nil {
		t.Fatal(err)
	}
	var enum *btf.Enum
	if err := spec.Types.TypeByName("reason", &enum); err != nil {
		t.Fatal(err)
	}
	if got, want := len(enum.Values), int(NumReasons)+1; got != want {
		t.Fatalf("enum reason has %d members, want the %d reasons and NUM_REASONS", got, want-1)
	}
	for i, v := range enum.Values {
		name, r := strings.ToLower(strings.TrimPrefix(v.Name, "REASON_")), Reason(v.Value)
		if uint64(i) != v.Value {
			t.Errorf("%s is %d in C, want %d", v.Name, v.Value, i)
		}
		if r == NumReasons {
			name = fmt.Sprintf("reason(%d)", NumReasons)
		}
		if got := r.String(); got != name {
			t.Errorf("%s is %q in Go, want %q", v.Name, got, name)
		}
	}
	if got, want := spec.Maps[steerMapCounters].MaxEntries, uint32(NumReasons); got != want {
		t.Errorf("the counters map has %d entries, want %d", got, want)
	}
}
