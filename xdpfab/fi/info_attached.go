// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"errors"
	"slices"
	"strings"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
)

// What GetInfo finds out about interfaces that daemons serve: what this program would
// have as a guest.

// Allowance is what a daemon's rule allows a program that attaches, in all its endpoints
// together. All but Rule are Unlimited where there is no daemon.
type Allowance struct {
	Rule       string `json:"rule,omitempty"`
	Operations Limit  `json:"operations"` // in flight
	Arena      Limit  `json:"arena"`      // bytes for operands and results on their way
	Arrivals   Limit  `json:"arrivals"`   // bytes that peers have sent and the program has not read
	Endpoints  Limit  `json:"endpoints"`
	Peers      Limit  `json:"peers"` // of its endpoints, each a session
	Regions    Limit  `json:"regions"`
	Memory     Limit  `json:"memory"` // bytes that its regions span; each is part of a memfd (mr.Memfd)
	Kept       Limit  `json:"kept"`   // bytes that outlive programs, of all programs of the rule
	Queues     Limit  `json:"queues"` // that it borrows (DomainAttr.Borrow)
}

// everything is the allowance of a program that has the interface itself.
func everything() Allowance {
	const u = Unlimited
	return Allowance{Operations: u, Arena: u, Arrivals: u, Endpoints: u, Peers: u, Regions: u, Memory: u,
		Kept: u, Queues: u}
}

// guest makes an offer one for a guest.
func (i *Info) guest(o *share.Offer) {
	s, endpoints := guestpkg.SizesOf(o.Sizes), Limit(o.Endpoints)
	i.Attach = AttachAlways
	i.Allowance = Allowance{Rule: o.Rule, Operations: Limit(s.Entries), Arena: Limit(s.Arena),
		Arrivals:  Limit(s.Arrivals),
		Endpoints: endpoints, Peers: Limit(o.Peers), Regions: Limit(o.Regions), Memory: Limit(o.Memory),
		Kept: Limit(o.Kept), Queues: Limit(o.Queues)}
	i.Transmit.Size = min(i.Transmit.Size, i.Allowance.Operations)
	i.Endpoint.TXContexts, i.Endpoint.RXContexts = min(i.Endpoint.TXContexts,
		endpoints), min(i.Endpoint.RXContexts, endpoints)
	d := &i.Domain
	d.TXContexts, d.RXContexts = 1, 1 // one engine, over the rings
	d.Endpoints, d.MaxEPSharedTX, d.MaxEPSharedRX = min(d.Endpoints, endpoints), min(d.MaxEPSharedTX,
		endpoints), min(d.MaxEPSharedRX, endpoints)
	d.MaxEPTX, d.MaxEPRX, d.MRs = min(d.MaxEPTX, endpoints), min(d.MaxEPRX, endpoints), i.Allowance.Regions
}

// daemonOffer is what one daemon offers.
type daemonOffer struct {
	share.Offer
	info node.InterfaceInfo
}

// infos lists the ways to use the daemon's interface.
func (o *daemonOffer) infos() []Info {
	list := offersAt(InterfaceInfo(o.info), o.Networks)
	for n := range list {
		list[n].guest(&o.Offer)
		list[n].Interface.UDP = o.info.UDP // the daemon's, which serves both
		list[n].Missing = []string{}
	}
	return list
}

// direct lists what the hints may mean of interfaces that this process has open, or can
// open, and returns why it cannot use others.
func (h *Info) direct(machine *nic.System, interfaces []nic.Interface) (list []Info, unusable []error) {
	if h.Attach == AttachAlways {
		return nil, nil
	}
	if h.bySockets() {
		return h.sockets(interfaces)
	}
	for _, i := range interfaces {
		plan := machine.Plan(&i, nic.Want{})
		for _, p := range plan.Problems {
			unusable = append(unusable, errors.New(p))
		}
		if d := instance(node.Here(i.Index)); d != nil {
			list = append(list, d.offer())
		} else if plan.Usable {
			list = append(list, offersOf(&i, &plan)...)
		}
	}
	return list, unusable
}

// named returns the interfaces of that name, or with that address, or all if there is
// none.
func named(all []nic.Interface, name string) []nic.Interface {
	return slices.DeleteFunc(all, func(i nic.Interface) bool {
		return name != "" && i.Name != name && !slices.ContainsFunc(i.Addresses, func(cidr string) bool {
			return strings.HasPrefix(cidr, name+"/")
		})
	})
}
