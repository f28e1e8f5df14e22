// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// TrafficClass is the class of traffic that an endpoint's packets are marked with
// (FI_TC_ and so on), by which switches and routers queue them. UDP packets carry a
// codepoint in the DS field of the IP header; packets with an 802.1Q tag carry a
// priority there, and raw Ethernet ones of a class get a tag for it, of VLAN id 0. The
// answers of peers are marked alike.
type TrafficClass uint16

// The classes, with codepoint and priority. TrafficDSCP makes any other.
const (
	// TrafficUnspec leaves the choice to the domain, and then marks nothing
	// (FI_TC_UNSPEC).
	TrafficUnspec          TrafficClass = iota
	TrafficBestEffort                   // FI_TC_BEST_EFFORT: 0, 0
	TrafficLowLatency                   // FI_TC_LOW_LATENCY: CS4 (32), 4
	TrafficDedicatedAccess              // FI_TC_DEDICATED_ACCESS: EF (46), 5
	TrafficBulkData                     // FI_TC_BULK_DATA: AF11 (10), 2
	TrafficScavenger                    // FI_TC_SCAVENGER: LE (1), 1, which is below 0
	TrafficNetworkControl               // FI_TC_NETWORK_CTRL: CS6 (48), 6
)

// trafficDSCP marks a class that is a codepoint (FI_TC_DSCP).
const trafficDSCP TrafficClass = 0x100

// TrafficDSCP returns the class of a codepoint of differentiated services, 0 to 63
// (fi_tc_dscp_set). Its priority is that of the codepoint's class selector, the upper
// three bits. A class of a greater codepoint is refused where it is used.
func TrafficDSCP(codepoint uint8) TrafficClass { return trafficDSCP | TrafficClass(codepoint) }

var trafficNames = []string{"unspec", "best_effort", "low_latency", "dedicated_access", "bulk_data", "scavenger",
	"network_ctrl"}

// marks are those of the classes that have a name.
var marks = [...]wire.Class{
	TrafficLowLatency: {DSCP: 32, PCP: 4}, TrafficDedicatedAccess: {DSCP: 46, PCP: 5},
	TrafficBulkData:  {DSCP: 10, PCP: 2},
	TrafficScavenger: {DSCP: 1, PCP: 1}, TrafficNetworkControl: {DSCP: 48, PCP: 6},
}

// DSCP returns the codepoint that packets of the class carry (fi_tc_dscp_get).
func (t TrafficClass) DSCP() uint8 { return t.mark().DSCP }

// PCP returns the priority in the 802.1Q tag that packets of the class carry.
func (t TrafficClass) PCP() uint8 { return t.mark().PCP }

// mark returns what packets of a valid class are marked with.
func (t TrafficClass) mark() wire.Class {
	switch {
	case t&^0xff == trafficDSCP:
		return wire.Class{DSCP: uint8(t), PCP: uint8(t) >> 3}
	case int(t) < len(marks):
		return marks[t]
	}
	return wire.Class{}
}

// valid reports whether there is such a class.
func (t TrafficClass) valid() bool {
	return int(t) < len(trafficNames) || t&^0x3f == trafficDSCP
}

// check refuses a class that there is not.
func (t TrafficClass) check(of string) error {
	if t.valid() {
		return nil
	}
	return errno.Refuse(ErrNotImplemented,
		"xdpfab: %s: traffic class %v: want TrafficUnspec to TrafficNetworkControl, or TrafficDSCP of 0..63", of, t)
}

// or returns the class, or else if it leaves the choice.
func (t TrafficClass) or(other TrafficClass) TrafficClass {
	if t == TrafficUnspec {
		return other
	}
	return t
}

// String returns a name such as "low_latency" or "dscp(46)".
func (t TrafficClass) String() string {
	switch {
	case int(t) < len(trafficNames):
		return trafficNames[t]
	case t&^0xff == trafficDSCP:
		return fmt.Sprintf("dscp(%d)", uint8(t))
	}
	return fmt.Sprintf("TrafficClass(%#x)", uint16(t))
}

// MarshalText implements encoding.TextMarshaler.
func (t TrafficClass) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// marked returns a link for the endpoint's packets.
func (ep *endpoint) marked(l wire.Link) wire.Link {
	l.Class = ep.attr.TrafficClass.mark()
	return l
}
