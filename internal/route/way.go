// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// way asks the routing tables for gateway and source: for routes through the interface,
// and then through those above it, the nearest first. own are the addresses of all.
func (r *Resolver) way(dst netip.Addr, own []netip.Addr) (hop Hop, err error) {
	first := r.noUpper()
	for _, index := range *r.chain.Load() {
		hop, err = r.wayBy(index, dst, own)
		if err == nil {
			return hop, nil
		}
		if first == nil || errors.Is(err, ErrNoSource) {
			first = err
		}
	}
	return Hop{}, first
}

// noUpper is the refusal of a VLAN's addresses while it has no interface; nil otherwise.
func (r *Resolver) noUpper() error {
	if len(*r.chain.Load()) > 0 {
		return nil
	}
	return fmt.Errorf("%[1]s: %[2]w: VLAN %[3]d has no interface, whose addresses and routes count: "+
		"`ip link add link %[1]s name %[1]s.%[3]d type vlan id %[3]d`, and give it an address",
		r.name, ErrNoRoute, r.vlan)
}

// wayBy is way for one of the interfaces.
func (r *Resolver) wayBy(index int, dst netip.Addr, own []netip.Addr) (Hop, error) {
	// If the request names the interface, IPv4 invents an on-link route where
	// there is none. It cannot do so if it is asked for the matching entry of the
	// table, so that request comes first.
	if _, err := r.lookup(dst, &netlink.RouteGetOptions{OifIndex: index, FIBMatch: true}); err != nil {
		return Hop{}, r.noRoute(dst, err)
	}
	route, err := r.lookup(dst, &netlink.RouteGetOptions{OifIndex: index})
	if err != nil {
		return Hop{}, r.noRoute(dst, err)
	}
	if route.Type != unix.RTN_UNICAST || route.LinkIndex != index {
		return Hop{}, r.noRoute(dst, nil)
	}
	hop := Hop{via: index, Local: r.macOf(index)}
	if gw, ok := addrOf(route.Gw); ok {
		hop.Gateway = gw
	} else if via, ok := route.Via.(*netlink.Via); ok { // a gateway of the other family
		hop.Gateway, _ = addrOf(via.Addr)
	}
	// The kernel lends addresses of other interfaces where this one has none;
	// answers to those would not reach us.
	src, ok := addrOf(route.Src)
	if !ok || !slices.Contains(own, src) {
		return Hop{},
			fmt.Errorf("%s to %v: %w (the kernel would use %v); give it one with `ip addr add … dev %s`",
				r.name, dst, ErrNoSource, route.Src, r.name)
	}
	hop.Source = src
	return hop, nil
}

// lookup is `ip route get`.
func (r *Resolver) lookup(dst netip.Addr, o *netlink.RouteGetOptions) (netlink.Route, error) {
	routes, err := ask(r, func(h *netlink.Handle) ([]netlink.Route, error) {
		return h.RouteGetWithOptions(dst.AsSlice(), o)
	})
	if err == nil && len(routes) == 0 {
		err = unix.ENETUNREACH
	}
	if err != nil {
		return netlink.Route{}, err
	}
	return routes[0], nil
}

// noRoute explains that the interface does not lead to dst, and which one does.
func (r *Resolver) noRoute(dst netip.Addr, cause error) error {
	hint := "the kernel knows none at all; add one with `ip route add`"
	own, err := ask(r, func(h *netlink.Handle) (netlink.Link, error) { return h.LinkByIndex(r.index) })
	if err == nil && own.Attrs().Flags&net.FlagUp == 0 {
		hint = fmt.Sprintf("the interface is down: `ip link set dev %s up`", r.name)
	} else if other, err := r.lookup(dst, nil); err == nil {
		link, err := ask(r, func(h *netlink.Handle) (netlink.Link, error) { return h.LinkByIndex(other.LinkIndex) })
		switch {
		case other.Type == unix.RTN_LOCAL:
			hint = "it is an address of another interface of this node"
		case other.Type != unix.RTN_UNICAST:
			hint = "it is not the address of one node: give that of the peer"
		case err == nil && other.LinkIndex != r.index:
			hint = fmt.Sprintf("the kernel would use %s; open that interface, or add a route", link.Attrs().Name)
		}
	}
	if cause == nil {
		return fmt.Errorf("%s to %v: %w: %s", r.name, dst, ErrNoRoute, hint)
	}
	return fmt.Errorf("%s to %v: %w: %s: %w", r.name, dst, ErrNoRoute, hint, cause)
}
