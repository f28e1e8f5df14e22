// SPDX-License-Identifier: Apache-2.0

package fi

import "github.com/xdpfab/xdpfab/internal/share"

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
	s, endpoints := o.Sizes.Usual(), Limit(o.Endpoints)
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
