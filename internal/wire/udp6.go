// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"net/netip"
)

// Offsets in the IPv6 header.
const (
	ip6Payload = 4
	ip6Next    = 6
	ip6Src     = 8
	ip6Dst     = 24
)

// put6 writes the parts of the IPv6 header that are the same for every packet to one peer.
func put6(b []byte, src, dst netip.Addr) {
	b[0] = 6 << 4
	b[ip6Next] = protoUDP
	b[7] = ttl
	s, d := src.As16(), dst.As16()
	copy(b[ip6Src:], s[:])
	copy(b[ip6Dst:], d[:])
}

// pseudo6 sums what never changes of the pseudo header (RFC 8200, 8.1).
func pseudo6(b []byte) uint64 { return sumBytes(b[ip6Src:ip6Len]) + protoUDP }

// finish6 sets the length and the UDP checksum, which IPv6 requires. b starts at the IPv6 header and ends with the
// frame; sum is the sum over the pseudo header and the UDP ports.
func finish6(b []byte, sum uint64) {
	be := binary.BigEndian
	n := len(b) - ip6Len
	be.PutUint16(b[ip6Payload:], uint16(n))
	udp := b[ip6Len:]
	c := ^fold(sum + 2*uint64(n) + sumBytes(udp[udpLen:])) // the length counts in both headers
	if c == 0 {
		c = 0xffff // zero would mean none
	}
	be.PutUint16(udp[6:], c)
}

// decap6 takes the IPv6 header off and cuts Ethernet padding.
func (s *Source) decap6(p []byte) ([]byte, Reason) {
	be := binary.BigEndian
	if len(p) < ip6Len {
		return nil, ReasonTruncated
	}
	n := int(be.Uint16(p[ip6Payload:]))
	switch {
	case p[0]>>4 != 6:
		return nil, ReasonBadEncap
	case p[ip6Next] != protoUDP:
		return nil, ReasonNotOurs // also every extension header
	case n < udpLen:
		return nil, ReasonBadEncap
	case ip6Len+n > len(p):
		return nil, ReasonTruncated
	}
	s.RemoteIP = netip.AddrFrom16([16]byte(p[ip6Src:]))
	s.LocalIP = netip.AddrFrom16([16]byte(p[ip6Dst:]))
	return p[ip6Len : ip6Len+n], ReasonOK
}
