// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"bytes"

	"github.com/vishvananda/netlink"
)

// Upper is an interface that stands above another one and takes what arrives there: a
// bridge, a bond, a team or a VRF. Addresses that belong to the lower one by intent are
// usually its.
type Upper struct {
	Index int
	Name  string
	Kind  string // "bridge", "bond", "team", "vrf", …
	// Foreign is whether packets to its addresses arrive at another MAC address than the
	// lower interface's, so that the program there does not take them.
	Foreign bool
	MAC     string
}

// mostUppers bounds the chain, which the kernel bounds likewise (MAX_NEST_DEV).
const mostUppers = 8

// Uppers follows the masters of a link upwards, the nearest first. get returns a link by
// its index.
func Uppers(l netlink.Link, get func(int) (netlink.Link, error)) (list []Upper, err error) {
	mac, foreign := l.Attrs().HardwareAddr, false
	for a := l.Attrs(); a.MasterIndex != 0 && len(list) < mostUppers; {
		master, err := get(a.MasterIndex)
		if err != nil {
			return list, err
		}
		a = master.Attrs()
		// A VRF forwards no frames: its addresses are asked for, and found, at the
		// interface below.
		foreign = foreign || master.Type() != "vrf" && !bytes.Equal(a.HardwareAddr, mac)
		list = append(list, Upper{Index: a.Index, Name: a.Name, Kind: master.Type(), Foreign: foreign,
			MAC: a.HardwareAddr.String()})
	}
	return list, nil
}
