// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/route"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Drivers of NICs set their queues up anew when they get an XDP program, and again when
// zero-copy begins. Meanwhile there is no carrier: for a second with igb, for longer
// where the speed is negotiated. Frames of that time are lost in copy mode, and peers
// give up after a few seconds, so Open waits until the carrier is back.
const (
	carrierBack = 10 * time.Second // for one that was there before; negotiation takes up to 5 s
	// carrierNew is for one that was not: the process that had the interface before has
	// just given it back, or there is no cable.
	carrierNew   = 2 * time.Second
	carrierPause = 10 * time.Millisecond // between two looks
)

// awaitCarrier waits until an interface can send; before says whether it could. Without a
// carrier in the end it is opened all the same: Watch tells that it is down, and when it
// is up. A veth keeps its carrier, which is its peer's to give. The end of the context is
// the one error.
func awaitCarrier(ctx context.Context, r *route.Resolver, driver string, before bool) error {
	if driver == "veth" {
		return nil
	}
	limit := carrierNew
	if before {
		limit = carrierBack
	}
	return await(ctx, limit, func() bool { return sends(r) })
}

// await waits until something is so, for a time at most.
func await(ctx context.Context, limit time.Duration, so func() bool) error {
	for end := time.Now().Add(limit); !so() && time.Now().Before(end); {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(carrierPause):
		}
	}
	return nil
}

// OwnFault says why no packet of this node reaches an address at present, whatever the
// peer does, and the remedy; "" if nothing is wrong here.
func (i *Interface) OwnFault(to wire.Addr) string {
	s, err := i.resolver.LinkState()
	switch {
	case err != nil:
		return ""
	case !s.AdminUp:
		return fmt.Sprintf("interface %[1]s is down: `ip link set dev %[1]s up`", s.Name)
	case !s.Up:
		return fmt.Sprintf("interface %s has no carrier: connect its cable, or set up the other end", s.Name)
	case !to.IsIP():
		return ""
	}
	own, err := i.resolver.Addrs()
	if err != nil {
		return ""
	}
	if to.IP.Is4() && !slices.ContainsFunc(own, netip.Addr.Is4) {
		return fmt.Sprintf("interface %[1]s no longer has an address to reach %[2]v from: "+
			"`ip address add ADDRESS/LENGTH dev %[1]s`", s.Name, to.IP)
	}
	if _, err = i.resolver.Look(to.IP.Unmap().WithZone(""), own); err != nil {
		return err.Error()
	}
	return ""
}

// sends reports whether an interface is up and has a carrier.
func sends(r *route.Resolver) bool {
	s, err := r.LinkState()
	return err == nil && s.Up
}
