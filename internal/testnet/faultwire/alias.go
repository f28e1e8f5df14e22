// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faultwire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// alias is the MAC address that a node seems to have at the other end.
type alias struct {
	own   []byte // of the node
	shown []byte
}

// Readdress makes a side silently appear with another MAC address at the other end
// from now on, as if another router took the place of one in between. Frames to its
// former address are lost. ARP is translated; neighbour discovery, whose messages have
// a checksum, is not. Nil brings the side's own address back.
func (w *Wire) Readdress(s *testnet.Side, mac net.HardwareAddr) {
	p := &w.ports[0]
	switch {
	case s == w.B:
		p = &w.ports[1]
	case s != w.A:
		panic(fmt.Sprintf("faultwire: %s is no side of this wire", s.Name))
	}
	if mac == nil {
		p.alias.Store(nil)
		return
	}
	p.alias.Store(&alias{own: s.MAC, shown: bytes.Clone(mac)})
}

const (
	macLen  = 6
	typeARP = 0x0806
	arpEnd  = 42 // of an ARP frame for IPv4
	// Offsets of the MAC addresses of sender and target in an ARP frame.
	arpSender, arpTarget = 22, 32
)

// readdress returns the frame as the far side sees it, or nil if no node has the frame's
// destination address now. It changes a copy, in scratch.
func (l *lane) readdress(frame []byte) []byte {
	from, to := l.from.alias.Load(), l.to.alias.Load()
	if from == nil && to == nil {
		return frame
	}
	frame = l.scratch[:copy(l.scratch, frame)]
	arp := len(frame) >= arpEnd && binary.BigEndian.Uint16(frame[2*macLen:]) == typeARP
	if to != nil {
		if bytes.HasPrefix(frame, to.own) {
			return nil
		}
		replace(frame, to.shown, to.own)
		if arp {
			replace(frame[arpTarget:], to.shown, to.own)
		}
	}
	if from != nil {
		replace(frame[macLen:], from.own, from.shown)
		if arp {
			replace(frame[arpSender:], from.own, from.shown)
		}
	}
	return frame
}

// replace writes one address over another at the beginning of b.
func replace(b, old, by []byte) {
	if bytes.HasPrefix(b, old) {
		copy(b, by)
	}
}
