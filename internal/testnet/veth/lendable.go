// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// ErrInUse says that a machine uses the interface that was to be borrowed.
var ErrInUse = errors.New("the machine uses it")

// lendable refuses interfaces of a namespace that anything but tests may need.
func lendable(home netns.NsHandle, names [2]string) error {
	h, err := netlink.NewHandleAt(home, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, name := range names {
		l, err := h.LinkByName(name)
		if err == nil {
			err = unused(h, l)
		}
		if err != nil {
			return fmt.Errorf("veth: borrowing %s: %w", name, err)
		}
	}
	return nil
}

// unused refuses an interface with an address, a route, an XDP program, or another
// interface above it.
func unused(h *netlink.Handle, l netlink.Link) error {
	a := l.Attrs()
	in := func(format string, args ...any) error {
		return fmt.Errorf("%s %w: want an interface without addresses, routes and users",
			fmt.Sprintf(format, args...), ErrInUse)
	}
	addrs, err := h.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if !addr.IP.IsLinkLocalUnicast() {
			return in("it has the address %s:", addr.IPNet)
		}
	}
	routes, err := h.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for i := range routes {
		if leadsTo(&routes[i], a.Index) {
			return in("it has the route %s:", routes[i])
		}
	}
	links, err := h.LinkList()
	if err != nil {
		return err
	}
	for _, other := range links {
		// A veth names its peer as the interface below it.
		if o := other.Attrs(); o.ParentIndex == a.Index && o.Index != a.Index && other.Type() != "veth" {
			return in("%s is on top of it:", o.Name)
		}
	}
	switch {
	case a.MasterIndex != 0:
		return in("it is a part of interface %d:", a.MasterIndex)
	case a.Xdp != nil && a.Xdp.Attached:
		return in("it has the XDP program %d:", a.Xdp.ProgId)
	}
	return nil
}

// leadsTo reports whether a route, link-local ones aside, goes by an interface.
func leadsTo(r *netlink.Route, index int) bool {
	if r.Dst != nil && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast()) {
		return false
	}
	for _, hop := range r.MultiPath {
		if hop.LinkIndex == index {
			return true
		}
	}
	return r.LinkIndex == index
}
