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
	// MaxAddrs is how many addresses of each IP family a Config can hold.
	MaxAddrs = 8
	// DefaultPort is the UDP port of xdpfab, the number of its EtherType.
	DefaultPort = 0x88B5
	// DefaultMTU is Ethernet's, in bytes.
	DefaultMTU = 1500
	// MinMTU is the least that carries a useful frame, in bytes.
	MinMTU = 256
)

// VLANPolicy says which frames are wanted as to 802.1Q tags.
//
// There is no choice by VLAN id: NICs commonly strip the tag before an XDP
// program runs, so that such a filter would look safer than it is. To be on one
// VLAN, keep the others off the switch port.
type VLANPolicy uint8

const (
	// VLANAny accepts frames untagged or with one tag of any id.
	VLANAny VLANPolicy = iota
	// VLANUntagged leaves tagged frames to the kernel (PassVLAN).
	VLANUntagged
)

// Config tells the program which frames are for this node. It cannot change
// while the program is loaded.
type Config struct {
	// MAC is the interface's own address. Frames to any other pass.
	MAC [6]byte
	// MTU is the interface's, in bytes: larger frames are dropped (DropLong).
	// Layer 3 counts, so Ethernet header and tag come on top. 0: DefaultMTU.
	MTU int
	// VLAN says whether tagged frames are accepted.
	VLAN VLANPolicy
	// AllowGeneric lets Attach in mode Auto fall back to Generic.
	AllowGeneric bool
	// UDP turns the UDP encapsulation on. The raw one is always on.
	UDP bool
	// Port is the UDP destination port. 0: DefaultPort.
	Port uint16
	// Addrs are the node's own unicast addresses, at most MaxAddrs of each
	// family; zones are ignored. Without UDP they are not used.
	Addrs []netip.Addr
}

// settings checks the Config and lays it out as steer.c wants it.
func (c *Config) settings() (s steerSettings, err error) {
	if c.MAC == [6]byte{} || c.MAC[0]&1 != 0 {
		return s, fmt.Errorf("bpf: MAC %v is not a unicast address; give the interface's own",
			net.HardwareAddr(c.MAC[:]))
	}
	for i := range s.Mac {
		s.Mac[i] = binary.NativeEndian.Uint16(c.MAC[2*i:])
	}
	s.Mtu = DefaultMTU
	if c.MTU != 0 {
		s.Mtu = uint32(c.MTU)
	}
	if c.MTU != 0 && (c.MTU < MinMTU || c.MTU > 1<<16-1) {
		return s, fmt.Errorf("bpf: MTU %d, want %d to 65535 bytes; set it with `ip link set dev … mtu`",
			c.MTU, MinMTU)
	}
	switch c.VLAN {
	case VLANAny:
	case VLANUntagged:
		s.UntaggedOnly = 1
	default:
		return s, fmt.Errorf("bpf: VLAN policy %d, want VLANAny or VLANUntagged", c.VLAN)
	}
	if c.UDP {
		err = c.udpSettings(&s)
	}
	return s, err
}

func (c *Config) udpSettings(s *steerSettings) error {
	s.Udp = 1
	port := c.Port
	if port == 0 {
		port = DefaultPort
	}
	s.Port = networkOrder(port)
	if len(c.Addrs) == 0 {
		return fmt.Errorf("bpf: UDP is on without an address, so that no packet could match; set Addrs")
	}
	for _, a := range c.Addrs {
		a = a.Unmap()
		if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() {
			return fmt.Errorf("bpf: %v is not a unicast address of this node", a)
		}
		if err := addAddr(s, a); err != nil {
			return err
		}
	}
	return nil
}

func addAddr(s *steerSettings, a netip.Addr) error {
	n := &s.NumIpv4
	if a.Is6() {
		n = &s.NumIpv6
	}
	if *n == MaxAddrs {
		return fmt.Errorf("bpf: more than %d addresses of one family, at %v", MaxAddrs, a)
	}
	if a.Is4() {
		b := a.As4()
		s.Ipv4[*n] = binary.NativeEndian.Uint32(b[:])
	} else {
		b := a.As16()
		for i := range s.Ipv6[*n] {
			s.Ipv6[*n][i] = binary.NativeEndian.Uint32(b[4*i:])
		}
	}
	*n++
	return nil
}

// networkOrder returns the number whose bytes in memory are v's in big-endian.
func networkOrder(v uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, v))
}
