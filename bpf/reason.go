// SPDX-License-Identifier: Apache-2.0

package bpf

import "fmt"

// Reason describes why the program decided about a packet as it did. Each packet is
// counted under exactly one reason. The order is that of enum reason in
// headers/reason.h.
type Reason uint32

const (
	// PassOther is a packet without an xdpfab encapsulation, or too short to
	// tell: ARP, TCP, other UDP, IPv6 extension headers, QinQ. It is passed to
	// the kernel, as with all Pass reasons.
	PassOther Reason = iota
	// PassOptions is UDP behind IPv4 options, whatever its port.
	PassOptions
	// PassFragment is a fragment of UDP over IPv4, whatever its port.
	PassFragment
	// PassMAC is xdpfab by EtherType or UDP port, but for another MAC address
	// or a group.
	PassMAC
	// PassVLAN is xdpfab of a VLAN that Config.VLAN leaves to the kernel.
	PassVLAN
	// PassAddr is for the UDP port at an IP address that is not served.
	PassAddr
	// DropUDPLength means that the IP and UDP lengths disagree, or exceed the
	// packet.
	DropUDPLength
	// DropShort means that the frame has less than 46 bytes.
	DropShort
	// DropLong means that the frame and its IP and UDP headers exceed
	// Config.MTU.
	DropLong
	// DropVersion means that the frame is not of version 1.
	DropVersion
	// DropType means that the frame's type is 0. Other types that version 1 does
	// not have are redirected: the process that serves a lane may be newer than
	// the program.
	DropType
	// DropNoSocket is a valid frame for whose queue and lane no socket is set.
	// It is dropped, not passed: the kernel could only answer with an ICMP
	// error.
	DropNoSocket
	// Redirect means that the frame was handed to a socket. The socket's
	// XDP_STATISTICS tell whether its ring had room (package xsk).
	Redirect

	// Executed is a frame of a resident session: the executor (Program.SetExecutor) has
	// answered or dropped it.
	Executed

	// DropSource means that the sender's address is none to answer at: a group's MAC
	// address, or an IP address that is unspecified, a loopback's, multicast or
	// broadcast.
	DropSource

	// NumReasons is the number of reasons above.
	NumReasons
)

// reasonNames are the C names without prefix, in lower case, as metric labels.
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
	Executed:      "executed",
	DropSource:    "drop_source",
}

// String returns the reason as a metric label, such as "drop_short".
func (r Reason) String() string {
	if r < NumReasons {
		return reasonNames[r]
	}
	return fmt.Sprintf("reason(%d)", uint32(r))
}
