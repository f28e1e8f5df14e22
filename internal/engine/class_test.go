// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/netip"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Every packet of a session has the class of its peer's link, in both directions, also
// after the initiator has moved, and whatever the network did to the marks of the hello.
func TestClassOfBothDirections(t *testing.T) {
	class := wire.Class{DSCP: 46, PCP: 5}
	for name, link := range map[string]wire.Link{"ethernet": ethernet(), "udp": udp()} {
		for _, bleached := range []bool{false, true} {
			link.Class = class
			c := newCable(t, session.Config{})
			c.pass = func(to int, packet []byte) bool {
				if bleached && link.Kind == wire.Ethernet { // the NIC takes the tag off
					c.deliver(to, append(packet[:12:12], packet[16:]...))
					return false
				}
				return true
			}
			p := c.peer(link)
			c.write(p, 0, 1)
			if moved := link; moved.Kind != wire.Ethernet {
				moved.LocalIP = netip.MustParseAddr("10.0.0.77")
				if err := p.SetLink(moved); err != nil {
					t.Fatal(err)
				}
			}
			c.write(p, 0, 2)
			for to, packets := range c.seen {
				if len(packets) < 4 {
					t.Errorf("%s: %d packets to node %d, want two of the handshake and two of operations", name, len(packets), to)
				}
				for i, b := range packets {
					ok := b[12] == 0x81 && b[14] == 5<<5 && b[15] == 0
					if link.Kind != wire.Ethernet {
						ok = b[12] == 8 && b[15] == 46<<2
					}
					if !ok {
						t.Errorf("%s, bleached %t: packet %d to node %d begins % x: it has not the class", name, bleached, i, to, b[:20])
					}
				}
			}
		}
	}
}
