// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"strconv"
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
