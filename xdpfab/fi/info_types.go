// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"strconv"

	"github.com/xdpfab/xdpfab/internal/share"
)

// Limit is a number of objects or bytes that must not be exceeded.
type Limit int

// Unlimited is the Limit that is never reached.
const Unlimited Limit = -1

// SharedContext, as a number of contexts of an endpoint, asks for one that endpoints
// share (FI_SHARED_CONTEXT).
const SharedContext Limit = -2

// Allows reports whether n is within the limit. Only Unlimited allows Unlimited.
func (l Limit) Allows(n Limit) bool {
	return l == Unlimited && n >= Unlimited || 0 <= n && n <= l
}

// String returns the number, or "unlimited" or "shared".
func (l Limit) String() string {
	switch l {
	case Unlimited:
		return "unlimited"
	case SharedContext:
		return "shared"
	}
	return strconv.Itoa(int(l))
}

// Version is a version of libfabric's interface, or of the provider (FI_VERSION).
// Versions can be compared.
type Version uint32

// MakeVersion returns a version (FI_VERSION).
func MakeVersion(major, minor uint16) Version { return Version(major)<<16 | Version(minor) }

// APIVersion is the version of libfabric whose manual pages this package follows
// (fi_version): 2.6.
const APIVersion Version = 2<<16 | 6

// Major and Minor are its parts (FI_MAJOR, FI_MINOR).
func (v Version) Major() uint16 { return uint16(v >> 16) }

// Minor returns the part after the point; see Major.
func (v Version) Minor() uint16 { return uint16(v) }

// String returns the version as in "2.6".
func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major(), v.Minor()) }

// MarshalText implements encoding.TextMarshaler.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// TagGeneric is the format of tags whose bits can all be masked one by one
// (FI_TAG_GENERIC).
const TagGeneric uint64 = 0xAAAA_AAAA_AAAA_AAAA

// Protocol is a protocol between endpoints (FI_PROTO_ and so on).
type Protocol uint32

// ProtocolXDPFab is that of docs/wire-format.md. The top bit is that of protocols that
// libfabric does not list.
const ProtocolXDPFab Protocol = 1<<31 | 0x78_64_70 // "xdp"

// String returns "xdpfab", or Protocol(n) for any other.
func (p Protocol) String() string {
	if p == ProtocolXDPFab {
		return "xdpfab"
	}
	return fmt.Sprintf("Protocol(%#x)", uint32(p))
}

// MarshalText implements encoding.TextMarshaler.
func (p Protocol) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// EndpointType is a kind of endpoint (enum fi_ep_type).
type EndpointType uint8

// The types. FI_EP_DGRAM, which is 2, is refused: endpoints are reliable.
const (
	EndpointUnspec EndpointType = 0 // FI_EP_UNSPEC
	EndpointMsg    EndpointType = 1 // FI_EP_MSG: connected
	EndpointRDM    EndpointType = 3 // FI_EP_RDM: reliable, without connections
)

// AddrFormat is a form of addresses (FI_ADDR_ and so on). It also tells the encapsulation
// of frames.
type AddrFormat uint8

// The formats. A domain that is opened for IP takes raw Ethernet frames too.
const (
	AddrUnspec   AddrFormat = iota // FI_FORMAT_UNSPEC
	AddrEthernet                   // a MAC address; raw Ethernet
	AddrIPv4                       // FI_SOCKADDR_IN; UDP
	AddrIPv6                       // FI_SOCKADDR_IN6; UDP
)

// Threading is how far the caller keeps its own threads apart (enum fi_threading).
type Threading uint8

// The models. ThreadDomain pays with manual progress: see DomainAttr.Threading. In all
// other cases ThreadSafe is in force, which surpasses what is asked for.
const (
	ThreadUnspec     Threading = iota // FI_THREAD_UNSPEC
	ThreadSafe                        // FI_THREAD_SAFE: any goroutine may call anything
	ThreadFID                         // FI_THREAD_FID
	ThreadDomain                      // FI_THREAD_DOMAIN
	ThreadCompletion                  // FI_THREAD_COMPLETION
	ThreadEndpoint                    // FI_THREAD_ENDPOINT
)

// ResourceMgmt is whether queues are protected against overruns (enum fi_resource_mgmt).
type ResourceMgmt uint8

// The values. RMEnabled is in force whatever is asked for.
const (
	RMUnspec   ResourceMgmt = iota // FI_RM_UNSPEC
	RMDisabled                     // FI_RM_DISABLED
	RMEnabled                      // FI_RM_ENABLED
)

// AVType is a kind of address vector (enum fi_av_type).
type AVType uint8

// The types. AVTable is in force whatever is asked for: its indexes serve a caller that
// keeps the addresses it gets, as AVMap wants it.
const (
	AVUnspec AVType = iota // FI_AV_UNSPEC
	AVMap                  // FI_AV_MAP
	AVTable                // FI_AV_TABLE: addresses count from 0
)

var (
	endpointNames  = []string{"unspec", "msg", "dgram", "rdm"}
	formatNames    = []string{"unspec", "ethernet", "ipv4", "ipv6"}
	threadingNames = []string{"unspec", "safe", "fid", "domain", "completion", "endpoint"}
	rmNames        = []string{"unspec", "disabled", "enabled"}
	avNames        = []string{"unspec", "map", "table"}
)

// String returns a name such as "rdm".
func (t EndpointType) String() string { return modeString("EndpointType", endpointNames, t) }

// MarshalText implements encoding.TextMarshaler.
func (t EndpointType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String returns a name such as "ipv4".
func (f AddrFormat) String() string { return modeString("AddrFormat", formatNames, f) }

// MarshalText implements encoding.TextMarshaler.
func (f AddrFormat) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// String returns a name such as "safe".
func (t Threading) String() string { return modeString("Threading", threadingNames, t) }

// MarshalText implements encoding.TextMarshaler.
func (t Threading) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. It changes nothing when it fails.
func (t *Threading) UnmarshalText(text []byte) error {
	return parseMode("threading", threadingNames, text, t)
}

// String returns a name such as "enabled".
func (r ResourceMgmt) String() string { return modeString("ResourceMgmt", rmNames, r) }

// MarshalText implements encoding.TextMarshaler.
func (r ResourceMgmt) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// String returns a name such as "table".
func (t AVType) String() string { return modeString("AVType", avNames, t) }

// MarshalText implements encoding.TextMarshaler.
func (t AVType) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

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
	s, endpoints := o.Sizes.Default(), Limit(o.Endpoints)
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
