// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
)

// Link says how frames reach one peer. The IP addresses are used by the UDP encapsulations alone.
type Link struct {
	Kind     Kind
	VLAN     uint16 // VLAN id 1..4095, 0 for none
	Local    MAC
	Remote   MAC // the peer's, or the next hop's
	LocalIP  netip.Addr
	RemoteIP netip.Addr
}

// ErrLink is what NewTemplate's errors wrap.
var ErrLink = errors.New("wire: impossible link")

// Template is the prebuilt header before every frame to one peer. It is a plain value.
type Template struct {
	sum  uint64 // of the fields that checksums cover and that never change
	kind Kind
	ip   uint8 // offset of the IP header
	len  uint8
	hdr  [MaxEncap]byte
}

// NewTemplate builds the header for a link. Its error wraps ErrLink.
func NewTemplate(l Link) (Template, error) {
	if err := l.check(); err != nil {
		return Template{}, err
	}
	t := Template{kind: l.Kind, ip: ethLen}
	be := binary.BigEndian
	copy(t.hdr[:], l.Remote[:])
	copy(t.hdr[6:], l.Local[:])
	if l.VLAN != 0 {
		be.PutUint16(t.hdr[12:], etherVLAN)
		be.PutUint16(t.hdr[14:], l.VLAN)
		t.ip += vlanLen
	}
	etherType := [numKinds]uint16{EtherType, etherIP4, etherIP6}[l.Kind]
	be.PutUint16(t.hdr[t.ip-2:], etherType)
	switch l.Kind {
	case UDP4:
		put4(t.hdr[t.ip:], l.LocalIP, l.RemoteIP)
	case UDP6:
		put6(t.hdr[t.ip:], l.LocalIP, l.RemoteIP)
	}
	t.len = t.ip + uint8(l.Kind.Overhead())
	t.SetFlow(0)
	return t, nil
}

// check refuses links that no header can express.
func (l *Link) check() error {
	switch {
	case l.Kind >= numKinds:
		return fmt.Errorf("%w: unknown encapsulation %d", ErrLink, l.Kind)
	case l.VLAN > vlanMask:
		return fmt.Errorf("%w: VLAN id %d, expected 1 to 4095, or 0 for none", ErrLink, l.VLAN)
	case l.Kind == UDP4 && !(l.LocalIP.Is4() && l.RemoteIP.Is4()):
		return fmt.Errorf("%w: udp4 from %v to %v, expected two IPv4 addresses", ErrLink, l.LocalIP, l.RemoteIP)
	case l.Kind == UDP6 && !(l.LocalIP.Is6() && l.RemoteIP.Is6()):
		return fmt.Errorf("%w: udp6 from %v to %v, expected two IPv6 addresses", ErrLink, l.LocalIP, l.RemoteIP)
	}
	return nil
}

// SetFlow derives the UDP source port from the session id that the frames carry, so that the flows of several sessions
// take different queues and paths. Without UDP it does nothing.
func (t *Template) SetFlow(session uint32) {
	if t.kind == Ethernet {
		return
	}
	be := binary.BigEndian
	udp := t.hdr[int(t.len)-udpLen:]
	be.PutUint16(udp, flowPort(session))
	be.PutUint16(udp[2:], UDPPort)
	if t.kind == UDP4 {
		t.sum = sumBytes(t.hdr[t.ip : t.ip+ip4Len])
	} else {
		t.sum = pseudo6(t.hdr[t.ip:]) + sumBytes(udp[:4])
	}
}

// Kind returns the encapsulation.
func (t *Template) Kind() Kind { return t.kind }

// Len returns the length of the header: where in the packet the frame begins.
func (t *Template) Len() int { return int(t.len) }

// Answers reports whether packets with this header go to where a packet came from. The packet has passed Strip.
func (t *Template) Answers(packet []byte) bool {
	if len(packet) < int(t.len) || MAC(packet[6:]) != MAC(t.hdr[:]) || packet[t.ip-2] != t.hdr[t.ip-2] || packet[t.ip-1] != t.hdr[t.ip-1] {
		return false
	}
	if t.ip > ethLen && (packet[14]^t.hdr[14])&(vlanMask>>8)|packet[15]^t.hdr[15] != 0 {
		return false
	}
	switch from, to := packet[t.ip:], t.hdr[t.ip:]; t.kind {
	case UDP4:
		return [4]byte(from[12:]) == [4]byte(to[16:])
	case UDP6:
		return [16]byte(from[8:]) == [16]byte(to[24:])
	}
	return true
}

// Put writes the header before the sealed frame of frameLen bytes that lies at b[t.Len():], and returns the length of
// the packet. IPv6 sums the frame, so the frame must be final.
func (t *Template) Put(b []byte, frameLen int) int {
	hdr := int(t.len)
	packet := b[:hdr+frameLen]
	copy(packet, t.hdr[:hdr])
	switch t.kind {
	case UDP4:
		ip := packet[t.ip:]
		finish4(ip, len(ip), t.sum)
	case UDP6:
		finish6(packet[t.ip:], t.sum)
	default:
		return len(packet)
	}
	binary.BigEndian.PutUint16(packet[hdr-udpLen+4:], uint16(udpLen+frameLen))
	return len(packet)
}

// sumBytes adds up b as 16-bit big-endian words, as the Internet checksum (RFC 1071) does, a missing last byte as zero.
// The sum does not mind the order of bytes (RFC 1071, 2.B): we add 64 bits at a time as they lie in little-endian
// words, carries wrapped around, and swap the result.
func sumBytes(b []byte) uint64 {
	le := binary.LittleEndian
	var sum, carry uint64
	for ; len(b) >= 32; b = b[32:] {
		sum, carry = bits.Add64(sum, le.Uint64(b), carry)
		sum, carry = bits.Add64(sum, le.Uint64(b[8:]), carry)
		sum, carry = bits.Add64(sum, le.Uint64(b[16:]), carry)
		sum, carry = bits.Add64(sum, le.Uint64(b[24:]), carry)
	}
	for ; len(b) >= 8; b = b[8:] {
		sum, carry = bits.Add64(sum, le.Uint64(b), carry)
	}
	var last uint64
	for i, v := range b {
		last |= uint64(v) << (8 * i)
	}
	sum, carry = bits.Add64(sum, last, carry)
	return uint64(bits.ReverseBytes16(fold(uint64(fold(sum)) + carry)))
}

// fold reduces a sum to 16 bits in one's complement arithmetic.
func fold(sum uint64) uint16 {
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16&0xffff + sum&0xffff + sum>>32
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum)
}
