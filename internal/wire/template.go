// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
)

// Link describes how frames reach one peer. The IP addresses are used by the UDP
// encapsulations alone.
type Link struct {
	Kind     Kind
	VLAN     uint16 // VLAN id 1..4095, 0 for none
	Local    MAC
	Remote   MAC // the peer's, or the next hop's
	LocalIP  netip.Addr
	RemoteIP netip.Addr
	Class    Class // of traffic
	Medium   Medium
}

// ErrLink is what NewTemplate's errors wrap.
var ErrLink = errors.New("impossible link")

// Template is the prebuilt header before every frame to one peer. It is a plain value.
type Template struct {
	sum    uint64 // of the fields that checksums cover and that never change
	medium Medium
	kind   Kind
	ip     uint8 // offset of what follows the EtherType: the IP header or the frame
	len    uint8
	hdr    [MaxEncap]byte
}

// NewTemplate builds the header for a link. Its error wraps ErrLink.
func NewTemplate(l Link) (Template, error) {
	if err := l.check(); err != nil {
		return Template{}, err
	}
	if l.Medium == OnSocket {
		return socketTemplate(&l), nil
	}
	t := Template{kind: l.Kind, ip: ethLen}
	be := binary.BigEndian
	copy(t.hdr[:], l.Remote[:])
	copy(t.hdr[6:], l.Local[:])
	if tci, tagged := l.tag(); tagged {
		be.PutUint16(t.hdr[12:], etherVLAN)
		be.PutUint16(t.hdr[14:], tci)
		t.ip += vlanLen
	}
	e := &encaps[l.Kind]
	be.PutUint16(t.hdr[t.ip-2:], e.etherType)
	t.len = t.ip + uint8(e.overhead)
	if e.ip != nil {
		headers := e.ip.header(l.LocalIP, l.RemoteIP, l.Class.DSCP)
		copy(t.hdr[t.ip:], headers[:])
		t.SetFlow(0)
	}
	return t, nil
}

// check refuses links that the headers cannot express.
func (l *Link) check() error {
	switch {
	case l.Kind >= NumKinds:
		return fmt.Errorf("%w: unknown encapsulation %d", ErrLink, l.Kind)
	case l.VLAN > vlanMask:
		return fmt.Errorf("%w: VLAN id %d, want 1 to 4095, or 0 for none", ErrLink, l.VLAN)
	}
	if ip := encaps[l.Kind].ip; ip != nil &&
		(l.LocalIP.BitLen() != 8*ip.addrLen || l.RemoteIP.BitLen() != 8*ip.addrLen) {
		return fmt.Errorf("%w: %v from %v to %v, want two %s addresses", ErrLink, l.Kind, l.LocalIP,
			l.RemoteIP, ip.family)
	}
	if err := l.checkMedium(); err != nil {
		return err
	}
	return l.Class.check()
}

// SetFlow derives the UDP source port from the session id that the frames carry, so that
// the flows of several sessions take different queues and paths. Without UDP it does
// nothing.
func (t *Template) SetFlow(session uint32) {
	ip := encaps[t.kind].ip
	if ip == nil || t.medium == OnSocket { // whose source port is the kernel's
		return
	}
	putPorts(t.hdr[int(t.len)-udpLen:], session)
	t.sum = ip.sum([MaxOverhead]byte(t.hdr[t.ip:]))
}

// Link returns a link of the class of traffic that leads to the same address from the
// same address.
func (t *Template) Link(c Class) Link {
	if t.medium == OnSocket {
		return t.socketLink(c)
	}
	l := Link{Kind: t.kind, Remote: MAC(t.hdr[:]), Local: MAC(t.hdr[len(MAC{}):]), Class: c}
	if t.ip > ethLen {
		l.VLAN = binary.BigEndian.Uint16(t.hdr[14:]) & vlanMask
	}
	if ip := encaps[t.kind].ip; ip != nil {
		addresses := t.hdr[t.ip:]
		l.LocalIP, _ = netip.AddrFromSlice(addresses[ip.src : ip.src+ip.addrLen])
		l.RemoteIP, _ = netip.AddrFromSlice(addresses[ip.dst : ip.dst+ip.addrLen])
	}
	return l
}

// Kind returns the encapsulation.
func (t *Template) Kind() Kind { return t.kind }

// Len returns the length of the header: where in the packet the frame begins.
func (t *Template) Len() int { return int(t.len) }

// Answers reports whether packets with this header go back to where the given packet
// came from. That packet has passed Strip.
func (t *Template) Answers(packet []byte) bool {
	if t.medium == OnSocket {
		return len(packet) >= WayLen && [16]byte(packet) == [16]byte(t.hdr[wayTo:])
	}
	if len(packet) < int(t.len) || MAC(packet[6:]) != MAC(t.hdr[:]) || packet[t.ip-2] != t.hdr[t.ip-2] ||
		packet[t.ip-1] != t.hdr[t.ip-1] {
		return false
	}
	if t.ip > ethLen && (packet[14]^t.hdr[14])&(vlanMask>>8)|packet[15]^t.hdr[15] != 0 {
		return false
	}
	ip := encaps[t.kind].ip
	return ip == nil || bytes.Equal(packet[t.ip:][ip.src:ip.src+ip.addrLen], t.hdr[t.ip:][ip.dst:ip.dst+ip.addrLen])
}

// SameWay reports whether packets with either header go to the same address from the same
// address. The class and the flow may differ.
func (t *Template) SameWay(o *Template) bool {
	if t.medium != o.medium || t.kind != o.kind || t.ip != o.ip {
		return false
	}
	if t.medium == OnSocket {
		return [wayDSCP]byte(t.hdr[:]) == [wayDSCP]byte(o.hdr[:])
	}
	if [2 * len(MAC{})]byte(t.hdr[:]) != [2 * len(MAC{})]byte(o.hdr[:]) {
		return false
	}
	if t.ip > ethLen && (t.hdr[14]^o.hdr[14])&(vlanMask>>8)|t.hdr[15]^o.hdr[15] != 0 {
		return false
	}
	ip := encaps[t.kind].ip
	return ip == nil || bytes.Equal(t.hdr[t.ip:][ip.src:ip.src+2*ip.addrLen], o.hdr[t.ip:][ip.src:ip.src+2*ip.addrLen])
}

// Put writes the header before the sealed frame of frameLen bytes that lies at
// b[t.Len():], and returns the length of the packet. IPv6 sums the frame, so the frame
// must be final.
func (t *Template) Put(b []byte, frameLen int) int {
	hdr := int(t.len)
	packet := b[:hdr+frameLen]
	copy(packet, t.hdr[:hdr])
	if ip := encaps[t.kind].ip; ip != nil && t.medium == OnEthernet {
		ip.finish(packet[t.ip:], t.sum)
	}
	return len(packet)
}

// sumBytes adds up b as 16-bit big-endian words, as the Internet checksum (RFC 1071)
// does, a missing last byte as zero. The sum does not depend on the order of bytes (RFC
// 1071, 2.B): we add 64 bits at a time as little-endian words, wrap the carries around,
// and swap the result.
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
