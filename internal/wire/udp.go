// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// The UDP header, which ends the encapsulations by IP.
const (
	protoUDP = 17
	udpLen   = 8 // bytes
	ttl      = 64
	flowBase = 0xC000 // source ports: the dynamic range, 14 bits of entropy
)

// putPorts writes the part of a UDP header that is the same for every packet of
// a flow.
func putPorts(udp []byte, session uint32) {
	binary.BigEndian.PutUint16(udp, flowPort(session))
	binary.BigEndian.PutUint16(udp[2:], UDPPort)
}

// flowPort maps a session id to a UDP source port: NICs and switches spread flows by it.
func flowPort(session uint32) uint16 {
	return flowBase | uint16(session*0x9E3779B1>>18) // multiplicative hash, upper 14 bits
}

// putLength writes the length of a UDP header and the frame that follows it.
func putLength(udp []byte) { binary.BigEndian.PutUint16(udp[4:], uint16(len(udp))) }

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
