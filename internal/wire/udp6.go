// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"net/netip"
)

// udp6 is the encapsulation by IPv6 and UDP.
var udp6 = encap{
	name:      "udp6",
	etherType: 0x86DD,
	overhead:  ip6Len + udpLen,
	decap:     decap6,
	ip: &ipEncap{family: "IPv6", src: ip6Src, dst: ip6Dst, addrLen: 16, header: header6, sum: pseudo6,
		finish: finish6},
}

// The length of the IPv6 header, and offsets in it.
const (
	ip6Len     = 40
	ip6Payload = 4
	ip6Next    = 6
	ip6Src     = 8
	ip6Dst     = 24
)

// header6 returns the parts of the headers that are the same for every packet to one
// peer.
func header6(local, remote netip.Addr, dscp uint8) (b [MaxOverhead]byte) {
	binary.BigEndian.PutUint16(b[:], 6<<12|uint16(dscp)<<6)
	b[ip6Next] = protoUDP
	b[7] = ttl
	src, dst := local.As16(), remote.As16()
	copy(b[ip6Src:], src[:])
	copy(b[ip6Dst:], dst[:])
	return b
}

// pseudo6 sums what never changes of the pseudo header (RFC 8200, 8.1), and the UDP
// ports.
func pseudo6(h [MaxOverhead]byte) uint64 {
	return sumBytes(h[ip6Src:ip6Len]) + protoUDP + sumBytes(h[ip6Len:ip6Len+4])
}

// finish6 sets the lengths and the UDP checksum, which IPv6 requires: sum is that of
// pseudo6.
func finish6(b []byte, sum uint64) {
	be := binary.BigEndian
	udp := b[ip6Len:]
	n := len(udp)
	be.PutUint16(b[ip6Payload:], uint16(n))
	putLength(udp)
	c := ^fold(sum + 2*uint64(n) + sumBytes(udp[udpLen:])) // the length counts in both headers
	if c == 0 {
		c = 0xffff // zero would mean none
	}
	be.PutUint16(udp[6:], c)
}

// decap6 takes the headers off and cuts Ethernet padding.
func decap6(p []byte) (frame []byte, local, remote netip.Addr, reason Reason) {
	if reason = check6(p); reason != ReasonOK {
		return nil, local, remote, reason
	}
	frame, reason = decapUDP(p[ip6Len:][:binary.BigEndian.Uint16(p[ip6Payload:])])
	return frame, netip.AddrFrom16([16]byte(p[ip6Dst:])), netip.AddrFrom16([16]byte(p[ip6Src:])), reason
}

// check6 judges an IPv6 header.
func check6(p []byte) Reason {
	if len(p) < ip6Len {
		return ReasonTruncated
	}
	n := int(binary.BigEndian.Uint16(p[ip6Payload:]))
	switch {
	case p[0]>>4 != 6:
		return ReasonBadEncap
	case p[ip6Next] != protoUDP:
		return ReasonNotOurs // also every extension header
	case n < udpLen:
		return ReasonBadEncap
	case ip6Len+n > len(p):
		return ReasonTruncated
	}
	return ReasonOK
}
