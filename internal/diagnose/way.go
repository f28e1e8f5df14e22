// SPDX-License-Identifier: Apache-2.0

//go:build linux

package diagnose

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// way is what this node's kernel knows of the way to a peer.
type way struct {
	resolver *route.Resolver
	own      []netip.Addr
	hop      route.Hop    // to an IP address, if err is nil
	err      error        // why there is no hop
	aliases  []netip.Addr // that the neighbour table has for a MAC address
}

// look reads the kernel's tables, and sends nothing. The caller closes the way.
func look(ifindex int, peer wire.Addr) (w way, err error) {
	if w.resolver, err = route.New(ifindex, 0); err != nil {
		return w, err
	}
	if w.own, err = w.resolver.Addrs(); err != nil {
		return w, err
	}
	if peer.IsIP() {
		w.hop, w.err = w.resolver.Look(peer.IP, w.own)
		return w, nil
	}
	known, err := w.resolver.Neighbours()
	for ip, mac := range known {
		if mac == peer.MAC && !slices.Contains(w.own, ip) {
			w.aliases = append(w.aliases, ip)
		}
	}
	slices.SortFunc(w.aliases, func(a, b netip.Addr) int {
		if a.IsLinkLocalUnicast() != b.IsLinkLocalUnicast() { // global ones first
			return map[bool]int{true: 1, false: -1}[a.IsLinkLocalUnicast()]
		}
		return a.Compare(b)
	})
	return w, err
}

func (w *way) close() {
	if w.resolver != nil {
		w.resolver.Close()
	}
}

// gateway is the router on the way, empty if there is none.
func (w *way) gateway() string {
	if !w.hop.Gateway.IsValid() {
		return ""
	}
	return w.hop.Gateway.String()
}

// neighbourLimit is the time of the kernel's three attempts to find a neighbour, one a
// second, and a little more.
const neighbourLimit = 3500 * time.Millisecond

const neighbourPoll = 5 * time.Millisecond

// neighbour returns the MAC address of the next hop to an IP address. With the privilege
// for it, the kernel asks anew; otherwise a datagram has it ask if it knows none.
func (w *way) neighbour(ctx context.Context, ifname string, to netip.Addr, privileged bool) (wire.MAC, error) {
	ctx, cancel := context.WithTimeout(ctx, neighbourLimit)
	defer cancel()
	if privileged {
		hop, err := w.resolver.Resolve(ctx, to)
		return hop.MAC, err
	}
	next := w.hop.Next(to)
	go func() { _, _ = knock(ctx, ifname, to, knocks) }()
	for {
		known, err := w.resolver.Neighbours()
		if err != nil {
			return wire.MAC{}, err
		}
		if mac, is := known[next]; is {
			return mac, nil
		}
		select {
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return wire.MAC{}, fmt.Errorf("%v: %w", next, route.ErrUnreachable)
			}
			return wire.MAC{}, context.Cause(ctx)
		case <-time.After(neighbourPoll):
		}
	}
}

// linkLocal is the address that a host with a MAC address has by default (RFC 4291, an
// interface identifier of the form EUI-64).
func linkLocal(mac wire.MAC) netip.Addr {
	return netip.AddrFrom16([16]byte{0: 0xfe, 1: 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe,
		13: mac[3], 14: mac[4], 15: mac[5]})
}
