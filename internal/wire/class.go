// SPDX-License-Identifier: Apache-2.0

package wire

import "fmt"

// Class is the class of traffic that packets are marked with, for the network to treat
// them by. The zero value marks nothing.
type Class struct {
	DSCP uint8 // differentiated services codepoint of the IP header, 0..63
	PCP  uint8 // priority of the 802.1Q tag, 0..7
}

const (
	maxDSCP  = 63
	maxPCP   = 7
	pcpShift = 13 // of the priority within the tag
)

// check refuses classes that the headers cannot express.
func (c Class) check() error {
	if c.DSCP > maxDSCP || c.PCP > maxPCP {
		return fmt.Errorf("%w: codepoint %d and priority %d, want at most %d and %d", ErrLink, c.DSCP, c.PCP,
			maxDSCP, maxPCP)
	}
	return nil
}

// tag returns the 802.1Q tag of packets to the link's peer. A raw frame without VLAN has
// a priority tag, of VLAN id 0, if it has a priority: there is nothing else to carry it.
func (l *Link) tag() (tci uint16, tagged bool) {
	tci = uint16(l.Class.PCP)<<pcpShift | l.VLAN
	return tci, l.VLAN != 0 || tci != 0 && l.Kind == Ethernet
}
