// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"net/netip"
)

// Offsets in the IPv4 header, and the bits of its fragment field.
const (
	ip4Total = 2
	ip4Frag  = 6
	ip4Proto = 9
	ip4Sum   = 10
	ip4Src   = 12
	ip4Dst   = 16

	ip4DontFragment = 0x4000
	ip4IsFragment   = 0x3fff // more fragments, or an offset
)

// put4 writes the parts of the IPv4 header that are the same for every packet to one peer.
func put4(b []byte, src, dst netip.Addr) {
	b[0] = 4<<4 | ip4Len/4
	binary.BigEndian.PutUint16(b[ip4Frag:], ip4DontFragment)
	b[8] = ttl
	b[ip4Proto] = protoUDP
	s, d := src.As4(), dst.As4()
	copy(b[ip4Src:], s[:])
	copy(b[ip4Dst:], d[:])
}

// finish4 sets the total length of n bytes and the header checksum. sum is the sum over the header with both zero.
func finish4(b []byte, n int, sum uint64) {
	be := binary.BigEndian
	be.PutUint16(b[ip4Total:], uint16(n))
	be.PutUint16(b[ip4Sum:], ^fold(sum+uint64(n)))
}

// decap4 takes the IPv4 header off and cuts Ethernet padding.
func (s *Source) decap4(p []byte) ([]byte, Reason) {
	be := binary.BigEndian
	if len(p) < ip4Len {
		return nil, ReasonTruncated
	}
	total := int(be.Uint16(p[ip4Total:]))
	switch {
	case p[0] != 4<<4|ip4Len/4:
		return nil, ReasonBadEncap
	case p[ip4Proto] != protoUDP:
		return nil, ReasonNotOurs
	case be.Uint16(p[ip4Frag:])&ip4IsFragment != 0:
		return nil, ReasonFragment
	case total < ip4Len+udpLen:
		return nil, ReasonBadEncap
	case total > len(p):
		return nil, ReasonTruncated
	}
	s.RemoteIP = netip.AddrFrom4([4]byte(p[ip4Src:]))
	s.LocalIP = netip.AddrFrom4([4]byte(p[ip4Dst:]))
	return p[ip4Len:total], ReasonOK
}
