// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"fmt"
	"net/netip"
)

// Medium is what carries packets. It decides what stands before a frame in the memory of
// a packet, which is all that the engine and the ports need to agree on.
type Medium uint8

// The media.
const (
	// OnEthernet: the port sends and receives whole Ethernet packets, with all headers.
	OnEthernet Medium = iota
	// OnSocket: the port has UDP sockets, and the kernel makes the headers. Before a
	// frame stands a [Way] instead. On the wire it is the same as from OnEthernet with
	// UDP4 or UDP6.
	OnSocket
)

// Way is what stands before a frame on the medium OnSocket: where it comes from, and
// where it goes. An IPv4 address is in its IPv6 form.
type Way struct {
	From, To [16]byte
	DSCP     uint8 // of the IP header
}

// The layout of a Way, bytes. Its length keeps frames aligned.
const (
	wayTo   = 16
	wayDSCP = 32
	WayLen  = 40
)

// PutWay writes a way into the first WayLen bytes of b.
func PutWay(b []byte, w *Way) {
	copy(b, w.From[:])
	copy(b[wayTo:], w.To[:])
	b[wayDSCP] = w.DSCP
	clear(b[wayDSCP+1 : WayLen])
}

// WayOf reads the way before a frame. A packet that is too short has the zero Way.
func WayOf(packet []byte) (w Way) {
	if len(packet) >= WayLen {
		w = Way{From: [16]byte(packet), To: [16]byte(packet[wayTo:]), DSCP: packet[wayDSCP]}
	}
	return w
}

// Strip returns the frame of a packet, which must be addressed to local unless the
// packets were sifted, or the medium is OnSocket. It does not return the sender: nearly
// every packet belongs to a session, which knows it.
func (m Medium) Strip(packet []byte, local MAC, sifted bool) (frame []byte, reason Reason) {
	if m == OnEthernet {
		return Strip(packet, local, sifted)
	}
	if len(packet) < WayLen {
		return nil, ReasonTruncated
	}
	return packet[WayLen:], ReasonOK
}

// Source returns where a packet came from that Strip has accepted.
func (m Medium) Source(packet []byte) Source {
	if m == OnEthernet {
		_, from, _ := Decap(packet)
		return from
	}
	w := WayOf(packet)
	from := Source{Medium: OnSocket, RemoteIP: netip.AddrFrom16(w.From).Unmap(),
		LocalIP: netip.AddrFrom16(w.To).Unmap()}
	from.Kind = Addr{IP: from.RemoteIP}.Kind()
	return from
}

// socketTemplate is NewTemplate for the medium OnSocket.
func socketTemplate(l *Link) Template {
	t := Template{medium: OnSocket, kind: l.Kind, len: WayLen}
	PutWay(t.hdr[:], &Way{From: l.LocalIP.As16(), To: l.RemoteIP.As16(), DSCP: l.Class.DSCP})
	return t
}

// socketLink is Template.Link for the medium OnSocket.
func (t *Template) socketLink(c Class) Link {
	w := WayOf(t.hdr[:])
	return Link{Medium: OnSocket, Kind: t.kind, Class: c,
		LocalIP: netip.AddrFrom16(w.From).Unmap(), RemoteIP: netip.AddrFrom16(w.To).Unmap()}
}

// checkMedium refuses links that the medium cannot express.
func (l *Link) checkMedium() error {
	switch {
	case l.Medium > OnSocket:
		return fmt.Errorf("%w: unknown medium %d", ErrLink, l.Medium)
	case l.Medium == OnSocket && (l.Kind == Ethernet || l.VLAN != 0):
		return fmt.Errorf(
			"%w: %v with VLAN id %d by a UDP socket, want udp4 or udp6 and no VLAN, which is the kernel's to add",
			ErrLink, l.Kind, l.VLAN)
	}
	return nil
}

// LeadsTo reports whether packets with this header come back to the node that sends them.
// Its Ethernet address is local.
func (t *Template) LeadsTo(local MAC) bool {
	if t.medium == OnSocket {
		return [16]byte(t.hdr[:]) == [16]byte(t.hdr[wayTo:])
	}
	return MAC(t.hdr[:]) == local
}
