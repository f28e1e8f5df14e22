// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

const (
	// Lanes is the number of socket slots on one receive queue.
	Lanes = 64
	// MaxQueues is the number of receive queues that a session id can name.
	MaxQueues = 64
	// MaxReceiveQueues is the number of receive queues for which a Program can have
	// sockets. Those that no session id can name are for sockets that pass frames on.
	MaxReceiveQueues = 1024
	// MaxAddrs is how many addresses a Program can serve.
	MaxAddrs = 1024
	// MaxMACs is how many MAC addresses besides the interface's own a Program can take
	// frames for.
	MaxMACs = 16
	// DefaultPort is the UDP port of xdpfab, the number of its EtherType.
	DefaultPort = 0x88B5
	// DefaultMTU is Ethernet's, in bytes.
	DefaultMTU = 1500
	// MinMTU is the least MTU that carries a useful frame, in bytes.
	MinMTU = 256
)

// Config tells the program which frames are for this node. Only the addresses can
// change while the program is loaded: Program.SetAddrs.
type Config struct {
	// MAC is the interface's own address. Frames to any other address pass, but for those
	// of Program.SetMACs.
	MAC [6]byte
	// MTU is the interface's, in bytes: larger frames are dropped (DropLong).
	// The MTU is that of layer 3: Ethernet header and tag are not counted. 0
	// means DefaultMTU.
	MTU int
	// VLAN decides whose frames are accepted, by their tags.
	VLAN VLANPolicy
	// UDP turns the UDP encapsulation on. The raw one is always on.
	UDP bool
	// Port is the UDP destination port. 0 means DefaultPort.
	Port uint16
	// Execute lets the program call another one, which executes requests:
	// Program.SetExecutor.
	Execute bool
	// Frags has the program take packets that lie in several buffers, as drivers receive
	// an MTU in that one buffer does not hold. It takes Linux 5.18.
	Frags bool
	// Addrs are the node's own unicast addresses to begin with, at most MaxAddrs;
	// zones are ignored. Without UDP they are not used.
	Addrs []netip.Addr
}

// settings checks the Config and lays it out as steer.c expects it.
func (c *Config) settings() (s steerSettings, err error) {
	if c.MAC == [6]byte{} || c.MAC[0]&1 != 0 {
		return s, fmt.Errorf("bpf: %w: MAC %v is not a unicast address; give the interface's own",
			ErrConfig, net.HardwareAddr(c.MAC[:]))
	}
	for i := range s.Mac {
		s.Mac[i] = binary.NativeEndian.Uint16(c.MAC[2*i:])
	}
	s.Mtu = DefaultMTU
	if c.MTU != 0 {
		s.Mtu = uint32(c.MTU)
	}
	if c.MTU != 0 && (c.MTU < MinMTU || c.MTU > 1<<16-1) {
		return s, fmt.Errorf("bpf: %w: MTU %d, want %d to 65535 bytes; set it with `ip link set dev … mtu`",
			ErrConfig, c.MTU, MinMTU)
	}
	if c.VLAN > MaxVLAN && c.VLAN != VLANAny {
		return s, fmt.Errorf("bpf: %w: VLAN %d, want 1 to %d, VLANUntagged or VLANAny", ErrConfig, uint16(c.VLAN),
			MaxVLAN)
	}
	s.Vlan = uint16(c.VLAN)
	if c.Execute {
		s.Execute = 1
	}
	if c.Frags {
		s.Frags = 1
	}
	if c.UDP {
		s.Udp = 1
		s.Port = networkOrder(DefaultPort)
		if c.Port != 0 {
			s.Port = networkOrder(c.Port)
		}
	}
	return s, nil
}

// networkOrder returns the number whose bytes in memory are v's in big-endian.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
