// SPDX-License-Identifier: Apache-2.0

package share

import "net/netip"

// CallOffer asks what a host would give: nothing; Offer. It may come before CallAttach,
// or in its place.
const CallOffer = "offer"

// Offer is what a host gives a guest that attaches. The numbers are the most that the
// guest may have at a time.
type Offer struct {
	Attached
	Networks []netip.Prefix `json:"networks"` // by addresses of which the interface is reached over UDP
	Rule     string         `json:"rule"`     // what sets the limits
	Sizes    Sizes          `json:"sizes"`

	Endpoints int `json:"endpoints"`
	Peers     int `json:"peers"`
	Regions   int `json:"regions"`
	Memory    int `json:"memory"` // bytes that the regions span
	Kept      int `json:"kept"`   // bytes that outlive programs, of all programs of the rule
	Queues    int `json:"queues"` // to borrow
}
