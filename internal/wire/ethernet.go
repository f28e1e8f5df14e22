// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net"
	"net/netip"
)

// The Ethernet header and the 802.1Q tag: lengths in bytes, and what is in them.
const (
	ethLen  = 14
	vlanLen = 4

	etherVLAN = 0x8100
	vlanMask  = 0x0fff // the VLAN id within the tag; the rest is priority
)

// MAC is an Ethernet address.
type MAC [6]byte

// String returns the address as in 02:00:00:00:00:0b.
func (m MAC) String() string { return net.HardwareAddr(m[:]).String() }

// ethernet is the raw encapsulation: nothing stands between the EtherType and the frame.
var ethernet = encap{
	name:      "ethernet",
	etherType: EtherType,
	decap: func(p []byte) (frame []byte, local, remote netip.Addr, reason Reason) {
		return p, local, remote, ReasonOK
	},
}
