// SPDX-License-Identifier: Apache-2.0

package bpf

import "fmt"

// Reason says why the program decided about a packet as it did. Each packet is
// counted under exactly one. The order is that of enum reason in steer.c.
type Reason uint32

const (
	// PassOther: not an xdpfab encapsulation, or too short to tell: ARP, TCP,
	// other UDP, IPv6 extension headers, QinQ. Passed to the kernel, like all
	// of the Pass reasons.
	PassOther Reason = iota
	// PassOptions: UDP behind IPv4 options, whatever its port.
	PassOptions
	// PassFragment: a fragment of UDP over IPv4, whatever its port.
	PassFragment
	// PassMAC: xdpfab by EtherType or UDP port, but for another MAC or a group.
	PassMAC
	// PassVLAN: has an 802.1Q tag although Config.VLAN wants none.
	PassVLAN
	// PassAddr: the UDP port at an IP address that is not in Config.Addrs.
	PassAddr
	// DropUDPLength: the IP and UDP lengths disagree, or exceed the packet.
	DropUDPLength
	// DropShort: the frame has less than 46 bytes.
	DropShort
	// DropLong: the frame and its IP and UDP headers exceed Config.MTU.
	DropLong
	// DropVersion: the frame is not version 1.
	DropVersion
	// DropType: the frame's type is 0. Others that version 1 does not have are
	// redirected: what serves a lane may be younger than the program.
	DropType
	// DropNoSocket: a sound frame, but no socket is set for its queue and lane.
	// Dropped, not passed: the kernel could only answer with an ICMP error.
	DropNoSocket
	// Redirect: handed to a socket. Whether that socket's ring had room is for
	// its XDP_STATISTICS to say (package xsk).
	Redirect

	// NumReasons is the number of reasons above.
	NumReasons
)

// reasonNames are the C names without prefix, in lower case: metric labels.
var reasonNames = [NumReasons]string{
	PassOther:     "pass_other",
	PassOptions:   "pass_options",
	PassFragment:  "pass_fragment",
	PassMAC:       "pass_mac",
	PassVLAN:      "pass_vlan",
	PassAddr:      "pass_addr",
	DropUDPLength: "drop_udp_length",
	DropShort:     "drop_short",
	DropLong:      "drop_long",
	DropVersion:   "drop_version",
	DropType:      "drop_type",
	DropNoSocket:  "drop_no_socket",
	Redirect:      "redirect",
}

// String returns the reason as a metric label, such as "drop_short".
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint32(r))
}
