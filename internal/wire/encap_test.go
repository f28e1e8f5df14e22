// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"testing"
)

var (
	macA = MAC{2, 0, 0, 0, 0, 0xa}
	macB = MAC{2, 0, 0, 0, 0, 0xb}
	ip4A = netip.MustParseAddr("10.0.0.1")
	ip4B = netip.MustParseAddr("10.0.0.2")
	ip6A = netip.MustParseAddr("fd00::1")
	ip6B = netip.MustParseAddr("fd00::2")
)

// links returns one link for every encapsulation, with and without a VLAN and a class.
func links() (ls []Link) {
	for _, class := range []Class{{}, {DSCP: 46, PCP: 5}, {DSCP: 63, PCP: 7}} {
		for _, vlan := range []uint16{0, 1, 4095} {
			ls = append(ls,
				Link{Kind: Ethernet, VLAN: vlan, Local: macA, Remote: macB, Class: class},
				Link{Kind: UDP4, VLAN: vlan, Local: macA, Remote: macB, LocalIP: ip4A, RemoteIP: ip4B, Class: class},
				Link{Kind: UDP6, VLAN: vlan, Local: macA, Remote: macB, LocalIP: ip6A, RemoteIP: ip6B, Class: class})
		}
	}
	return ls
}

// packet wraps a frame.
func packet(t testing.TB, l Link, session uint32, frame []byte) []byte {
	tm, err := NewTemplate(l)
	if err != nil {
		t.Fatal(err)
	}
	tm.SetFlow(session)
	b := bytes.Repeat([]byte{0xee}, tm.Len()+len(frame))
	copy(b[tm.Len():], frame)
	if n := tm.Put(b, len(frame)); n != len(b) {
		t.Fatalf("Put returned %d, want %d", n, len(b))
	}
	return b
}

// onesSum is the plain RFC 1071 sum, for comparison.
func onesSum(parts ...[]byte) uint16 {
	var sum uint32
	for _, b := range parts {
		for i, v := range b {
			sum += uint32(v) << (8 * (1 - i%2))
			sum = sum&0xffff + sum>>16
		}
	}
	return uint16(sum)
}

func TestEncapRoundTrip(t *testing.T) {
	for _, l := range links() {
		for _, n := range []int{MinFrame, 47, 700, 1401} {
			frame := pattern(n)
			b := packet(t, l, 0x12345678, frame)
			got, from, r := Decap(append(b, 0xaa, 0xbb)[:len(b)+2*min(1, int(l.Kind))]) // junk behind the UDP length
			if r != ReasonOK || !bytes.Equal(got, frame) {
				t.Fatalf("%+v, %d bytes: %v", l, n, r)
			}
			want := Source{Kind: l.Kind, VLAN: l.VLAN, Remote: l.Local, Local: l.Remote, RemoteIP: l.LocalIP,
				LocalIP: l.RemoteIP}
			if from != want {
				t.Fatalf("source %+v, want %+v", from, want)
			}
			reply := from.Reply(l.Class)
			reply.SetFlow(7)
			back := packet(t, Link{l.Kind, l.VLAN, l.Remote, l.Local, l.RemoteIP, l.LocalIP, l.Class, OnEthernet}, 7, frame)
			answer := append(make([]byte, reply.Len()), frame...)
			reply.Put(answer, len(frame))
			if !bytes.Equal(answer, back) || reply.Kind() != l.Kind {
				t.Fatalf("reply\n% x, want\n% x", answer[:reply.Len()], back[:reply.Len()])
			}
			if _, tagged := l.tag(); !tagged && reply.Len()-14 != l.Kind.Overhead() || tagged && reply.Len()-18 != l.Kind.Overhead() {
				t.Fatalf("%v: header of %d bytes, overhead %d", l.Kind, reply.Len(), l.Kind.Overhead())
			}
		}
	}
}

func TestChecksumsOfIP(t *testing.T) {
	for n := MinFrame; n < 200; n++ {
		frame := pattern(n)
		b := packet(t, links()[1], uint32(n), frame)
		if onesSum(b[14:34]) != 0xffff {
			t.Fatalf("IPv4, %d bytes: header % x", n, b[14:34])
		}
		if got := binary.BigEndian.Uint16(b[16:]); int(got) != 28+n || b[20] != 0x40 || b[22] != 64 {
			t.Fatalf("IPv4, %d bytes: header % x", n, b[14:34])
		}
		b = packet(t, links()[2], uint32(n), frame)
		udp := b[54:]
		length := binary.BigEndian.AppendUint32(nil, uint32(len(udp)))
		if onesSum(b[22:54], length, []byte{0, 17}, udp) != 0xffff {
			t.Fatalf("IPv6, %d bytes: checksum of\n% x", n, b)
		}
	}
}

// TestIPv6ChecksumOfZero: a sum that comes out as zero is sent as ffff.
func TestIPv6ChecksumOfZero(t *testing.T) {
	frame := pattern(MinFrame)
	b := packet(t, links()[2], 0, frame)
	// Add what the checksum says is missing: the sum becomes ffff, its complement zero.
	old := binary.BigEndian.Uint16(b[60:])
	word := binary.BigEndian.Uint16(frame)
	sum := uint32(old) + uint32(word)
	binary.BigEndian.PutUint16(frame, uint16(sum+sum>>16))
	if got := binary.BigEndian.Uint16(packet(t, links()[2], 0, frame)[60:]); got != 0xffff {
		t.Errorf("checksum %#x, want 0xffff", got)
	}
}

func TestFlowPort(t *testing.T) {
	seen := map[uint16]bool{}
	for i := range uint32(64) {
		b := packet(t, links()[1], uint32(NewSessionID(0, 0, i, i*7)), pattern(MinFrame))
		src, dst := binary.BigEndian.Uint16(b[34:]), binary.BigEndian.Uint16(b[36:])
		if src < flowBase || dst != UDPPort {
			t.Fatalf("ports %d to %d", src, dst)
		}
		seen[src] = true
	}
	if len(seen) < 60 {
		t.Errorf("64 sessions share %d source ports", len(seen))
	}
}

func TestDecapRefuses(t *testing.T) {
	frame := pattern(MinFrame)
	edit := func(link int, f func(b []byte) []byte) []byte { return f(packet(t, links()[link], 1, frame)) }
	set := func(link, at int, v ...byte) []byte {
		return edit(link, func(b []byte) []byte { copy(b[at:], v); return b })
	}
	cut := func(link, n int) []byte { return edit(link, func(b []byte) []byte { return b[:n] }) }
	tests := []struct {
		name   string
		packet []byte
		want   Reason
	}{
		{"empty", nil, ReasonTruncated},
		{"cut Ethernet", cut(0, 13), ReasonTruncated},
		{"cut tag", cut(3, 17), ReasonTruncated},
		{"other EtherType", set(0, 12, 8, 6), ReasonNotOurs},
		{"two tags", set(3, 16, 0x81, 0), ReasonBadEncap},
		{"802.1ad", set(3, 12, 0x88, 0xa8), ReasonNotOurs},
		{"IPv4 cut", cut(1, 33), ReasonTruncated},
		{"IPv4 options", set(1, 14, 0x46), ReasonBadEncap},
		{"IPv4 of version 6", set(1, 14, 0x65), ReasonBadEncap},
		{"IPv4, TCP", set(1, 23, 6), ReasonNotOurs},
		{"IPv4, first fragment", set(1, 20, 0x20), ReasonFragment},
		{"IPv4, later fragment", set(1, 20, 0, 1), ReasonFragment},
		{"IPv4, longer than the packet", cut(1, 14+28+MinFrame-1), ReasonTruncated},
		{"IPv4, total too small", set(1, 16, 0, 27), ReasonBadEncap},
		{"IPv4, UDP length too small", set(1, 38, 0, 53), ReasonBadEncap},
		{"IPv4, UDP length too large", set(1, 38, 0, 55), ReasonBadEncap},
		{"IPv4, other port", set(1, 36, 0, 53), ReasonNotOurs},
		{"IPv6 cut", cut(2, 53), ReasonTruncated},
		{"IPv6 of version 4", set(2, 14, 0x40), ReasonBadEncap},
		{"IPv6, extension header", set(2, 20, 0), ReasonNotOurs},
		{"IPv6, no room for UDP", set(2, 18, 0, 7), ReasonBadEncap},
		{"IPv6, longer than the packet", cut(2, 14+48+MinFrame-1), ReasonTruncated},
		{"IPv6, UDP length", set(2, 58, 0, 8), ReasonBadEncap},
		{"IPv6, other port", set(2, 56, 1, 2), ReasonNotOurs},
		{"from a group", set(0, 6, 3), ReasonBadSource},
		{"from everybody, tagged", set(3, 6, 255, 255, 255, 255, 255, 255), ReasonBadSource},
		{"IPv4 from a group", set(1, 6, 1), ReasonBadSource},
		{"IPv4 from no address", set(1, 26, 0, 0, 0, 0), ReasonBadSource},
		{"IPv4 from loopback", set(1, 26, 127, 1), ReasonBadSource},
		{"IPv4 from multicast", set(1, 26, 224), ReasonBadSource},
		{"IPv4 from broadcast", set(1, 26, 255, 255, 255, 255), ReasonBadSource},
		{"IPv6 from multicast", set(2, 22, 0xff), ReasonBadSource},
		{"to a group", set(0, 0, 3), ReasonNotOurs},
		{"IPv4 to a group", set(1, 0, 1), ReasonNotOurs},
		{"IPv4 to multicast", set(1, 30, 224), ReasonNotOurs},
		{"IPv6 to multicast", set(2, 38, 0xff), ReasonNotOurs},
		{"IPv6 from no address", set(2, 22, make([]byte, 16)...), ReasonBadSource},
	}
	for _, sifted := range []bool{false, true} {
		if f, r := Strip(set(0, 6, 3), MAC(set(0, 6, 3)), sifted); r != ReasonBadSource || f != nil {
			t.Errorf("Strip of a frame from a group: %v", r)
		}
		if f, r := Strip(set(0, 0, 3), MAC{}, sifted); r != ReasonNotOurs || f != nil {
			t.Errorf("Strip of a frame to a group: %v", r)
		}
		for k := range 3 { // of every encapsulation
			want := map[bool]Reason{true: ReasonOK, false: ReasonNotOurs}[sifted]
			if _, r := Strip(set(k, 5, 0x77), MAC(set(k, 5, 0x78)), sifted); r != want {
				t.Errorf("Strip of frame %d to another node, sifted %v: %v, want %v", k, sifted, r, want)
			}
		}
	}
	for _, tt := range tests {
		if f, _, r := Decap(tt.packet); r != tt.want || f != nil {
			t.Errorf("%s: %v with %d bytes, want %v", tt.name, r, len(f), tt.want)
		}
	}
	for name, b := range map[string][]byte{
		"IPv4 without DF":    set(1, 20, 0),
		"IPv4 checksum":      set(1, 24, 1, 2),
		"IPv4 UDP checksum":  set(1, 40, 1, 2),
		"IPv6 UDP checksum":  set(2, 60, 0, 0),
		"IPv6 traffic class": set(2, 14, 0x6b, 0xcd),
	} {
		if _, _, r := Decap(b); r != ReasonOK {
			t.Errorf("%s: %v", name, r)
		}
	}
	if _, from, r := Decap(set(3, 14, 0xe0)); r != ReasonOK || from.VLAN != 1 {
		t.Errorf("a tag with priority: %v, VLAN %d", r, from.VLAN)
	}
}

// The class is where the standards put it, and nowhere else: in the DS field (RFC 2474)
// and in the priority of an 802.1Q tag, which only a raw frame has for that alone.
func TestClassInHeaders(t *testing.T) {
	class := Class{DSCP: 46, PCP: 5}
	for _, l := range links() {
		if l.Class != class {
			continue
		}
		plain := l
		plain.Class = Class{}
		marked, bare := packet(t, l, 7, pattern(100)), packet(t, plain, 7, pattern(100))
		at := 14
		if tagged := l.VLAN != 0 || l.Kind == Ethernet; tagged {
			if marked[12] != 0x81 || marked[13] != 0 || marked[14] != 5<<5|byte(l.VLAN>>8) || marked[15] != byte(l.VLAN) {
				t.Errorf("%v, VLAN %d: tag % x, want 81 00, priority 5 and the id", l.Kind, l.VLAN, marked[12:16])
			}
			at += 4
			marked[14] &= 0x0f
			if l.VLAN == 0 {
				marked = append(marked[:12], marked[16:]...)
				at -= 4
			}
		}
		switch l.Kind {
		case UDP4:
			if ds := marked[at+1]; ds != 46<<2 || onesSum(marked[at:at+20]) != 0xffff {
				t.Errorf("udp4: DS field %#x, want %#x, and a correct checksum", ds, 46<<2)
			}
			marked[at+1] = 0
			copy(marked[at+10:at+12], bare[at+10:at+12]) // the checksum covers it
		case UDP6:
			if v := binary.BigEndian.Uint32(marked[at:]); v != 6<<28|46<<22 {
				t.Errorf("udp6: begins with %#x, want version 6, class %#x and no flow label", v, 46<<2)
			}
			marked[at], marked[at+1] = 6<<4, 0
		}
		if !bytes.Equal(marked, bare) {
			t.Errorf("%v, VLAN %d: the class changes more than its place:\n% x, want\n% x", l.Kind, l.VLAN, marked, bare)
		}
	}
}

func TestNewTemplateRefuses(t *testing.T) {
	for name, l := range map[string]Link{
		"kind":        {Kind: NumKinds},
		"vlan":        {VLAN: 4096},
		"codepoint":   {Class: Class{DSCP: 64}},
		"priority":    {Class: Class{PCP: 8}},
		"udp4 bare":   {Kind: UDP4},
		"udp4 on v6":  {Kind: UDP4, LocalIP: ip6A, RemoteIP: ip6B},
		"udp6 to v4":  {Kind: UDP6, LocalIP: ip6A, RemoteIP: ip4B},
		"udp6 nobody": {Kind: UDP6, LocalIP: ip6A},
	} {
		if _, err := NewTemplate(l); !errors.Is(err, ErrLink) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestEncapsAgree: what is derived from the table holds for every entry.
func TestEncapsAgree(t *testing.T) {
	names, types, longest := map[string]bool{}, map[uint16]bool{etherVLAN: true}, 0
	for k := range NumKinds {
		e := &encaps[k]
		if names[e.name] || types[e.etherType] || e.name == "" {
			t.Errorf("%v: its name or EtherType %#x is another's", k, e.etherType)
		}
		names[e.name], types[e.etherType] = true, true
		longest = max(longest, k.Overhead())
	}
	if longest != MaxOverhead {
		t.Errorf("the longest headers have %d bytes, MaxOverhead is %d", longest, MaxOverhead)
	}
	if Ethernet.String() != "ethernet" || NumKinds.String() != "encapsulation(3)" {
		t.Errorf("names %v, %v", Ethernet, NumKinds)
	}
}

func TestEncapAllocs(t *testing.T) {
	for _, l := range links() {
		b := packet(t, l, 1, pattern(MinFrame))
		if n := testing.AllocsPerRun(100, func() {
			frame, from, _ := Decap(b)
			tm := from.Reply(Class{})
			tm.SetFlow(3)
			tm.Put(b, len(frame))
		}); n != 0 {
			t.Errorf("%+v: %v allocations", l, n)
		}
	}
}

func FuzzDecap(f *testing.F) {
	for _, l := range links() {
		f.Add(packet(f, l, 9, seal(goodHeader(Ack), nil)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		frame, from, r := Decap(b)
		if r != ReasonOK {
			return
		}
		// An answer to the answer comes from where the packet came from, with the same
		// frame inside.
		tm := from.Reply(Class{})
		back := append(make([]byte, tm.Len()), frame...)
		tm.Put(back, len(frame))
		got, there, r := Decap(back)
		if r != ReasonOK || !bytes.Equal(got, frame) {
			t.Fatalf("%+v: the reply is refused: %v", from, r)
		}
		there.Local, there.Remote = there.Remote, there.Local
		there.LocalIP, there.RemoteIP = there.RemoteIP, there.LocalIP
		if there != from {
			t.Fatalf("%+v became %+v", from, there)
		}
	})
}

func BenchmarkEncap(b *testing.B) {
	for _, l := range links()[:3] {
		for _, n := range []int{MinFrame, 1400} {
			b.Run(fmt.Sprintf("%v/%d", l.Kind, n), func(b *testing.B) {
				tm, _ := NewTemplate(l)
				p := make([]byte, tm.Len()+n)
				b.ReportAllocs()
				for b.Loop() {
					tm.Put(p, n)
					if _, _, r := Decap(p); r != ReasonOK {
						b.Fatal(r)
					}
				}
			})
		}
	}
}
