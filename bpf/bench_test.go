// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/cilium/ebpf"
)

// BenchmarkSteer is the program's own cost for one packet, as the kernel's test
// run measures it: no driver, no delivery.
func BenchmarkSteer(b *testing.B) {
	raw := Config{MAC: ourMAC, VLAN: VLANAny}
	tcp := udp4Packet(make([]byte, 46))
	tcp[23] = 6 // the protocol of IP
	for _, c := range []struct {
		name   string
		cfg    Config
		packet []byte
	}{
		{"raw", raw, rawPacket(fab(3, 46))},
		{"raw-beside-udp", testConfig(), rawPacket(fab(3, 46))},
		{"tcp", raw, tcp},
		{"tcp-beside-udp", testConfig(), tcp},
		{"another-port-beside-udp", testConfig(), udp4ToPort(53, fab(3, 46))},
		{"udp4", testConfig(), udp4Packet(fab(3, 46))},
		{"udp4-last-address", testConfig(), udp4To(lastIPv4, fab(3, 46))},
		{"udp6-last-address", testConfig(), udp6To(lastIPv6, fab(3, 46))},
		{"other", raw, ethernet(0x0806, make([]byte, 46))},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := mustLoad(b, c.cfg, 1)
			setSocket(b, p, 0, testLane)
			b.ReportAllocs()
			b.ResetTimer()
			_, err := p.objects.XdpfabSteer.Run(&ebpf.RunOptions{
				Data: c.packet, Repeat: uint32(min(b.N, math.MaxUint32)),
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

// udp4ToPort is a packet to another UDP port.
func udp4ToPort(port uint16, frame []byte) []byte {
	p := udp4Packet(frame)
	binary.BigEndian.PutUint16(p[36:], port)
	return p
}
