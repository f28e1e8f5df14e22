// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"net/netip"
)

// Kind is the encapsulation of a frame.
type Kind uint8

// The encapsulations. Each may carry one 802.1Q tag.
const (
	Ethernet Kind = iota // the frame follows the EtherType
	UDP4                 // IPv4 and UDP
	UDP6                 // IPv6 and UDP
	numKinds
)

var kindNames = [numKinds]string{"ethernet", "udp4", "udp6"}

// String returns the name of the encapsulation.
func (k Kind) String() string { return nameOf(kindNames[:], "encapsulation", k) }

// Overhead returns the bytes between the Ethernet header and the frame: what a frame is shorter than the MTU.
func (k Kind) Overhead() int {
	switch k {
	case UDP4:
		return ip4Len + udpLen
	case UDP6:
		return ip6Len + udpLen
	}
	return 0
}

// Lengths of headers, bytes.
const (
	ethLen  = 14
	vlanLen = 4
	ip4Len  = 20
	ip6Len  = 40
	udpLen  = 8

	// MaxEncap is the longest header that a Template puts before a frame.
	MaxEncap = ethLen + vlanLen + ip6Len + udpLen
)

// EtherTypes of the headers.
const (
	etherVLAN = 0x8100
	etherIP4  = 0x0800
	etherIP6  = 0x86DD
)

const (
	protoUDP = 17
	ttl      = 64
	vlanMask = 0x0fff // the VLAN id within the tag; the rest is priority
	flowBase = 0xC000 // UDP source ports: the dynamic range, 14 bits of entropy
)

// MAC is an Ethernet address.
type MAC [6]byte

// Source is where a packet came from and what it was addressed to: everything that an answer needs. It is comparable;
// two packets of one peer over one path have equal Sources, whatever session they belong to (so the UDP source port,
// mere entropy, is not part of it, nor is the VLAN priority).
type Source struct {
	Kind   Kind
	VLAN   uint16 // VLAN id, 0 for none
	Remote MAC    // sender
	Local  MAC    // addressee
	// RemoteIP and LocalIP are set for the UDP encapsulations.
	RemoteIP, LocalIP netip.Addr
}

// Reply returns the Template for answers, from the address that the packet was sent to. The caller sets the flow.
func (s *Source) Reply() Template {
	t, _ := NewTemplate(Link{Kind: s.Kind, VLAN: s.VLAN, Local: s.Local, Remote: s.Remote, LocalIP: s.LocalIP,
		RemoteIP: s.RemoteIP}) // a Source from Decap is consistent; the zero Template is harmless
	return t
}

// Strip is Decap for a packet that must be addressed to local, without saying who sent it: nearly every packet belongs
// to a session, which knows.
func Strip(packet []byte, local MAC) (frame []byte, reason Reason) {
	if len(packet) >= ethLen && binary.BigEndian.Uint16(packet[12:]) == EtherType && MAC(packet) == local {
		return packet[ethLen:], ReasonOK
	}
	frame, from, reason := Decap(packet)
	if reason == ReasonOK && from.Local != local {
		return nil, ReasonNotOurs
	}
	return frame, reason
}

// Decap finds the frame in an Ethernet packet and says who sent it. The frame is a view into packet, cut to the length
// that the UDP header gives.
//
// It keeps the rules of the XDP program: at most one 802.1Q tag; IPv4 without options and fragments; IPv6 without
// extension headers; UDP to UDPPort, its length agreeing with IP's. IP and UDP checksums are not verified: the frame's
// own covers what matters, and addresses are only ever answered to, never trusted.
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
	switch etherType {
	case EtherType:
		return rest, from, ReasonOK
	case etherIP4:
		from.Kind = UDP4
		rest, reason = from.decap4(rest)
	case etherIP6:
		from.Kind = UDP6
		rest, reason = from.decap6(rest)
	case etherVLAN:
		return nil, from, ReasonBadEncap // a second tag
	default:
		return nil, from, ReasonNotOurs
	}
	if reason == ReasonOK {
		frame, reason = decapUDP(rest)
	}
	return frame, from, reason
}

// decapUDP takes the UDP header off a packet that the IP layer has cut to its own length.
func decapUDP(p []byte) ([]byte, Reason) {
	be := binary.BigEndian
	switch {
	case len(p) < udpLen:
		return nil, ReasonTruncated
	case be.Uint16(p[2:]) != UDPPort:
		return nil, ReasonNotOurs
	case int(be.Uint16(p[4:])) != len(p):
		return nil, ReasonBadEncap
	}
	return p[udpLen:], ReasonOK
}

// flowPort maps a session id to a UDP source port: NICs and switches spread flows by it.
func flowPort(session uint32) uint16 {
	return flowBase | uint16(session*0x9E3779B1>>18) // multiplicative hash, upper 14 bits
}
