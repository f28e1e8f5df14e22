// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/binary"
	"net/netip"
)

// udp4 is the encapsulation by IPv4 and UDP.
var udp4 = encap{
	name:      "udp4",
	etherType: 0x0800,
	overhead:  ip4Len + udpLen,
	decap:     decap4,
	ip: &ipEncap{family: "IPv4", src: ip4Src, dst: ip4Dst, addrLen: 4, header: header4,
		sum:    func(h [MaxOverhead]byte) uint64 { return sumBytes(h[:ip4Len]) },
		finish: finish4},
}

// The length of the IPv4 header, offsets in it, and the bits of its fragment field.
const (
	ip4Len   = 20
	ip4Total = 2
	ip4Frag  = 6
	ip4Proto = 9
	ip4Sum   = 10
	ip4Src   = 12
	ip4Dst   = 16

	ip4DontFragment = 0x4000
	ip4IsFragment   = 0x3fff // more fragments, or an offset
)

// header4 returns the parts of the headers that are the same for every packet to one
// peer.
func header4(local, remote netip.Addr, dscp uint8) (b [MaxOverhead]byte) {
	b[0] = 4<<4 | ip4Len/4
	b[1] = dscp << 2
	binary.BigEndian.PutUint16(b[ip4Frag:], ip4DontFragment)
	b[8] = ttl
	b[ip4Proto] = protoUDP
	src, dst := local.As4(), remote.As4()
	copy(b[ip4Src:], src[:])
	copy(b[ip4Dst:], dst[:])
	return b
}

// finish4 sets the lengths and the header checksum: sum is the sum over the header with
// both zero.
func finish4(b []byte, sum uint64) {
	be := binary.BigEndian
	be.PutUint16(b[ip4Total:], uint16(len(b)))
	be.PutUint16(b[ip4Sum:], ^fold(sum+uint64(len(b))))
	putLength(b[ip4Len:])
}

// decap4 takes the headers off and cuts Ethernet padding.
func decap4(p []byte) (frame []byte, local, remote netip.Addr, reason Reason) {
	if reason = check4(p); reason != ReasonOK {
		return nil, local, remote, reason
	}
	frame, reason = decapUDP(p[ip4Len:binary.BigEndian.Uint16(p[ip4Total:])])
	return frame, netip.AddrFrom4([4]byte(p[ip4Dst:])), netip.AddrFrom4([4]byte(p[ip4Src:])), reason
}

// check4 judges an IPv4 header.
func check4(p []byte) Reason {
	be := binary.BigEndian
	if len(p) < ip4Len {
		return ReasonTruncated
	}
	total := int(be.Uint16(p[ip4Total:]))
	switch {
	case p[0] != 4<<4|ip4Len/4:
		return ReasonBadEncap
	case p[ip4Proto] != protoUDP:
		return ReasonNotOurs
	case be.Uint16(p[ip4Frag:])&ip4IsFragment != 0:
		return ReasonFragment
	case total < ip4Len+udpLen:
		return ReasonBadEncap
	case total > len(p):
		return ReasonTruncated
	}
	return ReasonOK
}
