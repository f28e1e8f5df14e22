// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// ErrGone means that the interface is not in the Resolver's network namespace any
// more.
var ErrGone = errors.New("interface is gone")

// LinkState is the part of an interface's state that can change while it is in
// use.
type LinkState struct {
	Name    string
	MAC     wire.MAC
	MTU     int  // bytes
	AdminUp bool // set up by the administrator
	Up      bool // likewise, and with a carrier
}

// LinkState reads the interface's present state.
func (r *Resolver) LinkState() (LinkState, error) {
	link, err := r.link(r.index)
	if errors.Is(err, ErrGone) {
		return LinkState{}, fmt.Errorf("%s: %w", r.name, ErrGone)
	}
	if err != nil {
		return LinkState{}, fmt.Errorf("looking at %s: %w", r.name, err)
	}
	a := link.Attrs()
	// The operational state follows the carrier up to a second late, but only then does
	// the kernel send, too. IFF_LOWER_UP is the carrier itself.
	running := a.OperState == netlink.OperUp || a.OperState == netlink.OperUnknown
	up := uint32(unix.IFF_UP | unix.IFF_LOWER_UP)
	s := LinkState{Name: a.Name, MTU: a.MTU, AdminUp: a.RawFlags&unix.IFF_UP != 0, Up: a.RawFlags&up == up && running}
	copy(s.MAC[:], a.HardwareAddr)
	return s, nil
}

// Look is Resolve as far as the routing tables tell, without the next hop's MAC
// address; own are those of Addrs, which was called just before. It does not wait.
func (r *Resolver) Look(dst netip.Addr, own []netip.Addr) (Hop, error) {
	if slices.Contains(own, dst) {
		return Hop{MAC: r.mac, Local: r.mac, Source: dst}, nil
	}
	return r.way(dst, own)
}

// Next is the node on the link that a packet to dst goes to first.
func (h Hop) Next(dst netip.Addr) netip.Addr {
	if h.Gateway.IsValid() {
		return h.Gateway
	}
	return dst
}

// Neighbours are the nodes on the link whose MAC addresses the kernel knows.
func (r *Resolver) Neighbours() (map[netip.Addr]wire.MAC, error) {
	known := map[netip.Addr]wire.MAC{}
	for _, index := range *r.chain.Load() {
		for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
			list, err := ask(r, func(h *netlink.Handle) ([]netlink.Neigh, error) { return h.NeighList(index, family) })
			if err != nil {
				return nil, fmt.Errorf("neighbours on %s: %w", r.name, err)
			}
			for i := range list {
				if ip, mac, ok := located(&list[i]); ok {
					known[ip] = mac
				}
			}
		}
	}
	return known, nil
}

// leads returns the index of the interface whose neighbour a node on the link is.
func (r *Resolver) leads(next netip.Addr) int {
	nearest := r.index
	for n, index := range *r.chain.Load() {
		if n == 0 {
			nearest = index
			continue
		}
		if route, err := r.lookup(next, &netlink.RouteGetOptions{OifIndex: index, FIBMatch: true}); err == nil &&
			route.LinkIndex == index {
			return index
		}
	}
	return nearest
}

// Ask makes the kernel look for a neighbour anew, whatever it believes, and does
// not wait: the answer is a change of the neighbour table. The neighbour may ask for this
// node at the same moment: then the kernel does not ask before 5 s, but the neighbour's
// own words are such a change, too. Entries that the administrator has made permanent
// stay.
func (r *Resolver) Ask(next netip.Addr) error {
	n, err := r.entry(r.leads(next), next)
	if err != nil {
		return fmt.Errorf("neighbour %v on %s: %w", next, r.name, err)
	}
	if n.State&(unix.NUD_PERMANENT|unix.NUD_NOARP) != 0 {
		return nil
	}
	return r.prompt(n)
}
