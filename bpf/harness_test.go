// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Verdicts, from linux/bpf.h.
const (
	xdpDrop     = 1
	xdpPass     = 2
	xdpRedirect = 4
)

// verdicts is the verdict that belongs to each reason.
var verdicts = [NumReasons]uint32{
	PassOther: xdpPass, PassOptions: xdpPass, PassFragment: xdpPass,
	PassMAC: xdpPass, PassVLAN: xdpPass, PassAddr: xdpPass,
	DropUDPLength: xdpDrop, DropShort: xdpDrop, DropLong: xdpDrop,
	DropVersion: xdpDrop, DropType: xdpDrop, DropNoSocket: xdpDrop, DropSource: xdpDrop,
	Redirect: xdpRedirect,
	Executed: xdpDrop, // of an executor of a test
}

var (
	ourMAC  = [6]byte{0x02, 0, 0, 0, 0, 0x0b}
	ourIPv4 = netip.MustParseAddr("10.0.0.2")
	ourIPv6 = netip.MustParseAddr("fd00::2")
	// The last of a full list, so that all comparisons before it run.
	lastIPv4 = netip.MustParseAddr("192.0.2.8")
	lastIPv6 = netip.MustParseAddr("2001:db8::8")
)

// The slot that has a socket in most tests.
const (
	testLane = 37
	testMTU  = 1500
)

func testConfig() Config {
	c := Config{MAC: ourMAC, VLAN: VLANAny, UDP: true, Addrs: []netip.Addr{ourIPv4, ourIPv6}}
	for i := byte(3); i < 9; i++ {
		c.Addrs = append(c.Addrs, netip.AddrFrom4([4]byte{192, 0, 2, i - 1}),
			netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 15: i - 1}))
	}
	c.Addrs = append(c.Addrs, lastIPv4, lastIPv6)
	return c
}

// mustLoad loads the program for a test, which is skipped without privilege. With
// privilege, a refusal is a failure: that of the verifier is a permission error,
// too.
func mustLoad(t testing.TB, cfg Config, queues int) *Program {
	t.Helper()
	testnet.Require(t)
	p, err := Load(cfg, queues)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return p
}

// setSocket puts an AF_XDP socket into a slot.
func setSocket(t testing.TB, p *Program, queue, lane int) *os.File {
	t.Helper()
	socket := testnet.XDPSocket(t)
	if err := p.SetSocket(queue, lane, int(socket.Fd())); err != nil {
		t.Fatal(err)
	}
	return socket
}

// xdpMD is struct xdp_md, the context of a test run.
type xdpMD struct {
	Data, DataEnd, DataMeta, IngressIfindex, RXQueueIndex, EgressIfindex uint32
}

// run sends one packet through the program and returns the reason that was
// counted, having checked that the verdict fits it, that exactly one counter
// moved, by one, and that the packet came out as it went in. at.DataEnd, unless 0, is how
// many bytes the first fragment has.
func run(t testing.TB, p *Program, packet []byte, at *xdpMD) Reason {
	t.Helper()
	before, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	opts := ebpf.RunOptions{Data: packet, DataOut: make([]byte, len(packet)+64)}
	if at != nil {
		if at.DataEnd == 0 {
			at.DataEnd = uint32(len(packet))
		}
		opts.Context = at
	}
	verdict, err := p.objects.XdpfabSteer.Run(&opts)
	if at != nil && errors.Is(err, unix.EINVAL) && testnet.KernelBefore(t, 5, 15) {
		t.Skip("this kernel's BPF_PROG_TEST_RUN takes no xdp_md; it takes 5.15")
	}
	if err != nil {
		t.Fatalf("BPF_PROG_TEST_RUN of %d bytes: %v", len(packet), err)
	}
	after, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	reason, moved := NumReasons, uint64(0)
	for r := range NumReasons {
		if n := after[r] - before[r]; n != 0 {
			reason, moved = r, moved+n
		}
	}
	if moved != 1 {
		t.Fatalf("counters moved by %d in all: before %v, after %v; packet %x", moved, before, after, packet)
	}
	if verdict != verdicts[reason] {
		t.Errorf("counted %v, but verdict %d, want %d; packet %x", reason, verdict, verdicts[reason], packet)
	}
	if !bytes.Equal(opts.DataOut, packet) {
		t.Errorf("%v: packet changed\n from %x\n   to %x", reason, packet, opts.DataOut)
	}
	return reason
}

// fab is a frame of n bytes: version 1, a type, and a session on testLane.
func fab(typ byte, n int) []byte {
	b := make([]byte, max(n, 6))
	b[0] = 1<<4 | typ
	binary.LittleEndian.PutUint32(b[2:], testLane<<26|0x155555)
	return b[:n]
}

func ethernet(proto uint16, payload []byte) []byte {
	b := append(ourMAC[:len(ourMAC):len(ourMAC)], 0x02, 0, 0, 0, 0, 0x0a)
	return append(binary.BigEndian.AppendUint16(b, proto), payload...)
}

func rawPacket(frame []byte) []byte { return ethernet(0x88b5, frame) }

func udp(frame []byte) []byte {
	b := binary.BigEndian.AppendUint16(nil, 0xc123)
	b = binary.BigEndian.AppendUint16(b, DefaultPort)
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(frame)))
	return append(append(b, 0, 0), frame...)
}

func udp4To(dst netip.Addr, frame []byte) []byte {
	b := []byte{0x45, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(28+len(frame)))
	b = append(b, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1)
	return ethernet(0x0800, append(append(b, dst.AsSlice()...), udp(frame)...))
}

func udp6To(dst netip.Addr, frame []byte) []byte {
	b := []byte{0x60, 0, 0, 0}
	b = binary.BigEndian.AppendUint16(b, uint16(8+len(frame)))
	b = append(append(b, 17, 64), netip.MustParseAddr("fd00::1").AsSlice()...)
	return ethernet(0x86dd, append(append(b, dst.AsSlice()...), udp(frame)...))
}

func udp4Packet(frame []byte) []byte { return udp4To(ourIPv4, frame) }
func udp6Packet(frame []byte) []byte { return udp6To(ourIPv6, frame) }

// tagged inserts a tag of the given protocol (0x8100 or 0x88A8) after the MACs, with
// priority 5.
func tagged(tpid uint16, packet []byte) []byte { return taggedAs(tpid, testVLAN, packet) }

// testVLAN is the VLAN of tagged packets.
const testVLAN = 100

func taggedAs(tpid, vlan uint16, packet []byte) []byte {
	b := append([]byte(nil), packet[:12]...)
	b = binary.BigEndian.AppendUint16(b, tpid)
	b = binary.BigEndian.AppendUint16(b, 5<<13|vlan)
	return append(b, packet[12:]...)
}

// kinds are the encapsulations of a frame. header is the number of bytes below
// which the packet cannot be recognised; ip whether lengths are in it.
var kinds = []struct {
	name   string
	wrap   func(frame []byte) []byte
	header int
	ip     bool
}{
	{"raw", rawPacket, 14, false},
	{"udp4", udp4Packet, 42, true},
	{"udp6", udp6Packet, 62, true},
	{"vlan raw", func(f []byte) []byte { return tagged(0x8100, rawPacket(f)) }, 18, false},
	{"vlan udp4", func(f []byte) []byte { return tagged(0x8100, udp4Packet(f)) }, 46, true},
	{"vlan udp6", func(f []byte) []byte { return tagged(0x8100, udp6Packet(f)) }, 66, true},
}
