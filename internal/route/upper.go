// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"bytes"
	"errors"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Upper is an interface that stands above another one and takes what arrives there: a
// bridge, a bond, a team or a VRF. Addresses that belong to the lower one by intent are
// usually its.
type Upper struct {
	Index int
	Name  string
	Kind  string // "bridge", "bond", "team", "vrf", …
	// Foreign is whether packets to its addresses may arrive elsewhere than at the lower
	// interface: those to a bond or a team that does not have its port's MAC address come
	// to another port. Bridges and VLANs take what comes to a MAC address of their own.
	Foreign bool
	MAC     string
	at      wire.MAC // where packets to its addresses arrive
}

// above describes the interface l. Packets to the one below it arrive at the MAC address
// at, or may arrive elsewhere, if that one is foreign.
func above(l netlink.Link, at wire.MAC, foreign bool) Upper {
	a := l.Attrs()
	u := Upper{Index: a.Index, Name: a.Name, Kind: l.Type(), MAC: a.HardwareAddr.String(), Foreign: foreign, at: at}
	switch u.Kind {
	case "vrf": // it forwards no frames: neighbours find its addresses at the interface below
	case "bridge", "vlan":
		copy(u.at[:], a.HardwareAddr)
	default:
		u.Foreign = foreign || !bytes.Equal(a.HardwareAddr, at[:])
	}
	return u
}

// mostUppers bounds the chain, which the kernel bounds likewise (MAX_NEST_DEV).
const mostUppers = 8

// Uppers follows the masters of a link upwards, the nearest first. get returns a link by
// its index.
func Uppers(l netlink.Link, get func(int) (netlink.Link, error)) (list []Upper, err error) {
	var u Upper
	for copy(u.at[:], l.Attrs().HardwareAddr); l.Attrs().MasterIndex != 0 && len(list) < mostUppers; {
		if l, err = get(l.Attrs().MasterIndex); err != nil {
			return list, err
		}
		u = above(l, u.at, u.Foreign)
		list = append(list, u)
	}
	return list, nil
}

// Uppers are the interfaces above this one, the nearest first; with a VLAN, its own is
// the first, and without that one there are none.
func (r *Resolver) Uppers() (uppers []Upper, err error) {
	l, err := r.link(r.index)
	if err == nil && r.vlan != 0 {
		if l, err = r.tagged(); l != nil {
			uppers = []Upper{above(l, r.mac, false)}
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

// MACs returns the MAC addresses of interfaces above whose packets come to this
// interface, as Networks or Addrs found them last. Its own is not among them.
func (r *Resolver) MACs() (macs []wire.MAC) {
	for _, mac := range *r.macs.Load() {
		if !slices.Contains(macs, mac) {
			macs = append(macs, mac)
		}
	}
	return macs
}

// macOf returns the MAC address at which packets to an interface of the chain arrive.
func (r *Resolver) macOf(index int) wire.MAC {
	if mac, other := (*r.macs.Load())[index]; other {
		return mac
	}
	return r.mac
}

// LocalOf returns the MAC address to send from by a hop, as Networks or Addrs found it
// last, which may have been after the hop was found.
func (r *Resolver) LocalOf(h Hop) wire.MAC { return r.macOf(h.via) }

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
