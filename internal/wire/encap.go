// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"net/netip"
)

// Kind is the encapsulation of a frame.
type Kind uint8

// The encapsulations. Each may carry one 802.1Q tag. Adding one takes a line here, a line
// in encaps, and a file like udp4.go; then changes to the XDP program and to the options
// of the port.
const (
	Ethernet Kind = iota // the frame follows the EtherType
	UDP4                 // IPv4 and UDP
	UDP6                 // IPv6 and UDP
	NumKinds             // how many there are
)

var encaps = [NumKinds]encap{Ethernet: ethernet, UDP4: udp4, UDP6: udp6}

// encap holds everything that sets one encapsulation apart from the others. Its functions
// get and return values, so that nothing escapes.
type encap struct {
	name      string
	etherType uint16
	overhead  int // bytes of headers between the EtherType and the frame, at most MaxOverhead
	// decap finds the frame behind the headers, and the addresses in them, if it has
	// some.
	decap func(p []byte) (frame []byte, local, remote netip.Addr, reason Reason)
	ip    *ipEncap // nil if the frame follows the EtherType
}

// ipEncap holds what an encapsulation by IP and UDP has in addition.
type ipEncap struct {
	family   string // for error texts
	src, dst int    // where the addresses are in the IP header
	addrLen  int    // bytes
	// header returns the headers from IP on with the fields that are the same for every
	// packet from local to remote with the codepoint.
	header func(local, remote netip.Addr, dscp uint8) [MaxOverhead]byte
	// sum adds up the fields that checksums cover and that stay the same for every packet
	// of a flow.
	sum func(header [MaxOverhead]byte) uint64
	// finish sets what depends on the frame: b begins at the IP header and ends with the
	// frame.
	finish func(b []byte, sum uint64)
}

// String returns the name of the encapsulation.
func (k Kind) String() string {
	if k < NumKinds {
		return encaps[k].name
	}
	return nameOf(nil, "encapsulation", k)
}

// Overhead returns the number of bytes between the Ethernet header and the frame: the
// longest frame is shorter than the MTU by so much.
func (k Kind) Overhead() int { return encaps[k].overhead }

const (
	// MaxOverhead is the largest Overhead of all kinds. The smallest frame that sessions
	// can be agreed on follows from it, and is part of version 1: an encapsulation with
	// longer headers needs a larger MTU, and a constant of its own.
	MaxOverhead = ip6Len + udpLen
	// MaxEncap is the longest header that a Template puts before a frame.
	MaxEncap = ethLen + vlanLen + MaxOverhead
)

// Source is where a packet came from and what it was addressed to: everything that an
// answer needs. It is comparable; two packets of one peer over one path have equal
// Sources, whatever session they belong to (so the UDP source port, mere entropy, is not
// part of it, nor is the VLAN priority).
type Source struct {
	Kind   Kind
	VLAN   uint16 // VLAN id, 0 for none
	Remote MAC    // sender
	Local  MAC    // addressee
	// RemoteIP and LocalIP are set for the UDP encapsulations.
	RemoteIP, LocalIP netip.Addr
	Medium            Medium
}

// single reports whether the addresses of one end of a packet can be those of one node:
// an answer must neither go to a group nor come from one.
func single(mac MAC, ip netip.Addr) bool {
	if mac[0]&1 != 0 {
		return false
	}
	return !ip.IsValid() ||
		!ip.IsUnspecified() && !ip.IsLoopback() && !ip.IsMulticast() && !ip.Is4In6() && ip != broadcast
}

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// Addr returns the address of the sender, of endpoint 0.
func (s *Source) Addr() Addr {
	if s.Kind == Ethernet {
		return Addr{MAC: s.Remote}
	}
	return Addr{IP: s.RemoteIP}
}

// Reply returns the Template for answers of a class, from the address that the packet was
// sent to. The caller sets the flow.
func (s *Source) Reply(c Class) Template {
	t, _ := NewTemplate(Link{Medium: s.Medium, Kind: s.Kind, VLAN: s.VLAN, Local: s.Local, Remote: s.Remote,
		// a Source from Decap is consistent; the zero Template is harmless
		LocalIP: s.LocalIP, RemoteIP: s.RemoteIP, Class: c})
	return t
}

// Strip is Decap for a packet that must be addressed to local, unless the packets were
// sifted: then all are for this node, which may have further addresses. It does not
// return the sender: nearly every packet belongs to a session, which knows it.
func Strip(packet []byte, local MAC, sifted bool) (frame []byte, reason Reason) {
	if len(packet) >= ethLen && binary.BigEndian.Uint16(packet[12:]) == EtherType &&
		(sifted && packet[0]&1 == 0 || MAC(packet) == local) && packet[6]&1 == 0 {
		return packet[ethLen:], ReasonOK
	}
	frame, from, reason := Decap(packet)
	if reason == ReasonOK && !sifted && from.Local != local {
		return nil, ReasonNotOurs
	}
	return frame, reason
}

// Decap finds the frame in an Ethernet packet and returns the packet's source. The
// frame is a view into packet, cut to the length that the UDP header gives.
//
// It keeps the rules of the XDP program: at most one 802.1Q tag; IPv4 without options
// and fragments; IPv6 without extension headers; UDP to UDPPort, its length agreeing
// with IP's; a sender and an addressee that are one node each, and no group. IP and UDP
// checksums are not verified: the frame's own checksum covers what matters, and
// addresses are only used to send answers to, never trusted.
func Decap(packet []byte) (frame []byte, from Source, reason Reason) {
	if len(packet) < ethLen {
		return nil, from, ReasonTruncated
	}
	from.Local, from.Remote = MAC(packet), MAC(packet[6:])
	be := binary.BigEndian
	etherType, rest := be.Uint16(packet[12:]), packet[ethLen:]
	if etherType == etherVLAN {
		if len(rest) < vlanLen {
			return nil, from, ReasonTruncated
		}
		from.VLAN = be.Uint16(rest) & vlanMask
		etherType, rest = be.Uint16(rest[2:]), rest[vlanLen:]
	}
	for k := range NumKinds {
		if e := &encaps[k]; e.etherType == etherType {
			from.Kind = k
			frame, from.LocalIP, from.RemoteIP, reason = e.decap(rest)
			switch {
			case reason != ReasonOK:
			case !single(from.Remote, from.RemoteIP):
				return nil, from, ReasonBadSource
			case !single(from.Local, from.LocalIP):
				return nil, from, ReasonNotOurs
			}
			return frame, from, reason
		}
	}
	if etherType == etherVLAN {
		return nil, from, ReasonBadEncap // a second tag
	}
	return nil, from, ReasonNotOurs
}
