// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"bytes"
	"errors"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
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

// Uppers are the interfaces above this one, the nearest first; with a VLAN, its own is
// the first, and without that one there are none.
func (r *Resolver) Uppers() (uppers []Upper, err error) {
	l, err := r.link(r.index)
	if err == nil && r.vlan != 0 {
		mac := l.Attrs().HardwareAddr
		if l, err = r.tagged(); l != nil {
			a := l.Attrs()
			uppers = []Upper{{Index: a.Index, Name: a.Name, Kind: l.Type(), Foreign: !bytes.Equal(a.HardwareAddr, mac),
				MAC: a.HardwareAddr.String()}}
		}
	}
	if err != nil || l == nil {
		return nil, err
	}
	more, err := Uppers(l, r.link)
	if errors.Is(err, ErrGone) { // meanwhile; a notice of it is on the way
		err = nil
	}
	return append(uppers, more...), err
}

// tagged returns the 802.1Q interface of the VLAN; nil if there is none.
func (r *Resolver) tagged() (netlink.Link, error) {
	all, err := ask(r, func(h *netlink.Handle) ([]netlink.Link, error) { return h.LinkList() })
	for _, l := range all {
		if v, is := l.(*netlink.Vlan); is && v.ParentIndex == r.index && v.VlanId == int(r.vlan) &&
			v.VlanProtocol != netlink.VLAN_PROTOCOL_8021AD {
			return l, nil
		}
	}
	return nil, err
}

// link looks at an interface; the error is ErrGone if there is none.
func (r *Resolver) link(index int) (netlink.Link, error) {
	l, err := ask(r, func(h *netlink.Handle) (netlink.Link, error) { return h.LinkByIndex(index) })
	if errors.As(err, new(netlink.LinkNotFoundError)) || errors.Is(err, unix.ENODEV) {
		return nil, ErrGone
	}
	return l, err
}
