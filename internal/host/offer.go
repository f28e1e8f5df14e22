// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"

	"github.com/xdpfab/xdpfab/internal/share"
)

// networked is a device that can be reached at IP addresses.
type networked interface {
	Networks() ([]netip.Prefix, error)
}

// where tells the guest where it is, or would be, with which features.
func (g *Guest) where(features []string) (share.Attached, error) {
	info, err := json.Marshal(g.h.n.Dev.Info())
	return share.Attached{Version: share.Version, NetNS: g.h.n.Place.Namespace, PID: os.Getpid(), Interface: info,
		MAC: g.h.n.Dev.MAC(), Address: g.h.n.Name(0), MTU: g.h.n.Dev.MTU(), Features: features}, err
}

// offer answers what the guest would get.
func (g *Guest) offer(context.Context, struct{}) (o share.Offer, err error) {
	if o.Attached, err = g.where(share.Features); err != nil {
		return o, err
	}
	if n, is := g.h.n.Dev.(networked); is {
		if o.Networks, err = n.Networks(); err != nil {
			return o, err
		}
	}
	l := &g.limits
	o.Rule, o.Sizes = l.Rule, share.Sizes{Entries: l.Entries, Arena: l.Arena, Arrivals: l.Arrivals}
	o.Endpoints, o.Peers, o.Regions, o.Memory, o.Kept, o.Queues = l.Endpoints, l.Peers, l.Regions, l.Memory,
		l.Kept, l.Queues
	return o, nil
}
