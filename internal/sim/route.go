// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"maps"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// gateway is the first hop of a node in a routed world: the address that the node
// sends its packets to, and that all packets seem to come from. It moves when another
// router takes over.
type gateway struct {
	mac    wire.MAC
	moves  byte
	former map[wire.MAC]bool // former addresses that still accept packets
}

// move gives the gateway of a node another address. Packets to the former one are
// lost from now on, unless the new router answers to it as well.
func (g *gateway) move(index int) {
	g.moves++
	g.mac, g.former = wire.MAC{2, 1, 0, g.moves, byte(index >> 8), byte(index)}, nil
}

// takeOver is move for a router that answers to the former address too, as a
// virtual router does.
func (g *gateway) takeOver(index int) {
	taken := map[wire.MAC]bool{g.mac: true}
	maps.Copy(taken, g.former)
	g.move(index)
	g.former = taken
}

// receiver returns the node that a packet sent by a node is for, or nil when no
// node takes it.
func (net *network) receiver(from *node, packet []byte) *node {
	mac := wire.MAC(packet)
	if !net.w.plan.routed {
		return net.byMAC[mac]
	}
	if mac != from.gateway.mac && !from.gateway.former[mac] {
		return nil
	}
	_, src, reason := wire.Decap(packet)
	if reason != wire.ReasonOK {
		return nil
	}
	return net.byIP[src.LocalIP]
}

// readdress changes the addresses of a packet as the last router does.
func (n *node) readdress(packet []byte) {
	if n.w.plan.routed && len(packet) >= 12 {
		copy(packet, n.link.Local[:])
		copy(packet[6:], n.gateway.mac[:])
	}
}

// queueOf returns the queue on which the NIC puts a packet: one for each flow, until
// the steering changes.
func (n *node) queueOf(packet []byte) int {
	if len(n.ports) == 1 {
		return 0
	}
	flow, be := uint64(0), binary.BigEndian
	at := 14 + n.link.Kind.Overhead() - 8 // of the source port, with UDP
	switch {
	case n.link.Kind == wire.Ethernet && len(packet) >= 12:
		flow = uint64(be.Uint32(packet[8:]))
	case n.link.Kind != wire.Ethernet && len(packet) >= at+2:
		flow = uint64(be.Uint16(packet[at:])) | uint64(packet[at-5])<<16
	}
	h := (flow + n.steer) * 0x9E3779B97F4A7C15
	return int(h >> 32 % uint64(len(n.ports)))
}
