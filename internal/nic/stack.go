// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/xdpfab/xdpfab/internal/dump"
	"github.com/xdpfab/xdpfab/internal/route"
)

// Above is an interface that an interface belongs to: a bridge, a bond, a team, a VRF.
type Above struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	MAC       string   `json:"mac"`
	Addresses []string `json:"addresses"`
	// Served is whether its addresses are served on the interface below: packets to them
	// have to come to that one, be it to its MAC address or to the bridge's or VLAN's
	// own.
	Served bool `json:"served"`
}

// Below is an interface that an interface consists of: a bond's or a team's port, or the
// virtual function of a netvsc.
type Below struct {
	Name   string `json:"name"`
	Driver string `json:"driver"`
	Active bool   `json:"active"` // of a bond: packets come and go here at present
}

// stack fills in what stands above and below an interface; all are the links of its
// network namespace.
func (i *Interface) stack(l netlink.Link, all []netlink.Link) {
	i.Served = routable(i.Addresses)
	get := func(index int) (netlink.Link, error) {
		n := slices.IndexFunc(all, func(l netlink.Link) bool { return l.Attrs().Index == index })
		if n < 0 {
			return nil, route.ErrGone
		}
		return all[n], nil
	}
	uppers, _ := route.Uppers(l, get) // one that went away meanwhile is not above any more
	for _, u := range uppers {
		a := Above{Name: u.Name, Kind: u.Kind, MAC: u.MAC, Addresses: addressesOf(u.Index), Served: !u.Foreign}
		i.Above = append(i.Above, a)
		if a.Served {
			i.Served = append(i.Served, routable(a.Addresses)...)
		}
	}
	if i.Kind != "bond" && i.Kind != "team" && i.Driver != netvsc {
		return
	}
	queues := 0
	for _, b := range all {
		if a := b.Attrs(); a.MasterIndex == i.Index {
			i.Below = append(i.Below, Below{Name: a.Name, Driver: driver(a.Name), Active: active(l, b)})
			queues = max(queues, receives(a))
		}
	}
	// A bond and a team have 16 queues whatever is below, and frames keep the number of
	// the queue on which they arrived there.
	if i.Driver != netvsc && queues > 0 {
		i.RXQueues = min(i.RXQueues, queues)
	}
}

// netvsc is the driver of Azure's synthetic NIC, which passes the traffic of a virtual
// function.
const netvsc = "hv_netvsc"

// active reports whether a bond uses a port.
func active(master, port netlink.Link) bool {
	b, is := master.(*netlink.Bond)
	if is && b.Mode == netlink.BOND_MODE_ACTIVE_BACKUP {
		return b.ActiveSlave == port.Attrs().Index
	}
	return port.Attrs().OperState == netlink.OperUp
}

// receives returns how many queues a link receives with.
func receives(a *netlink.LinkAttrs) int {
	if rx, _, err := channels(a.Index); err == nil && rx > 0 {
		return rx
	}
	return max(a.NumRxQueues, 1)
}

func addressesOf(index int) (list []string) {
	l := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}
	addrs, _ := dump.Whole(func() ([]netlink.Addr, error) { return netlink.AddrList(l, netlink.FAMILY_ALL) })
	for _, a := range addrs {
		list = append(list, a.IPNet.String())
	}
	return list
}

// routable leaves out the addresses of the link alone, which are served, too, and tell
// nobody anything.
func routable(list []string) []string {
	return slices.DeleteFunc(append([]string{}, list...), func(cidr string) bool {
		p, err := netip.ParsePrefix(cidr)
		return err != nil || p.Addr().IsLinkLocalUnicast()
	})
}

// aggregates reports whether the interface stands for several others, and changes between
// them when one fails.
func (i *Interface) aggregates() bool {
	return i.Kind == "bond" || i.Kind == "team" || i.Driver == netvsc && len(i.Below) > 0
}

// consists names what an aggregate consists of, and the part that is active.
func (i *Interface) consists() (all, best string) {
	var names []string
	for _, b := range i.Below {
		if names = append(names, b.Name); b.Active && best == "" {
			best = b.Name
		}
	}
	if best == "" && len(names) > 0 {
		best = names[0]
	}
	if all = strings.Join(names, ", "); all == "" {
		all = "nothing"
	}
	return all, best
}

// where says where native XDP can be had in place of an aggregate.
func (i *Interface) where() string {
	all, best := i.consists()
	if best == "" {
		return fmt.Sprintf("it consists of %s", all)
	}
	return fmt.Sprintf("native XDP can be had below, but follows no fail-over: --interface %s (of %s)", best, all)
}
