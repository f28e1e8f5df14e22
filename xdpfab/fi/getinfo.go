// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// ErrNoInfo means that nothing on this machine is as the hints want it (-FI_ENODATA).
var ErrNoInfo = reason(syscall.ENODATA, "no interface offers this")

// GetInfo lists what Fabric.OpenInfo can open, the fastest first: each Ethernet interface
// that is fit for use, by raw Ethernet and by UDP over each version of IP that it has an
// address of (fi_getinfo). With hints, it lists what meets them; nil asks for nothing.
// Every result can do all that there is; Info.Caps has the primary capabilities that the
// hints name, or all.
//
// An interface that a daemon serves is listed as this program would have it through the
// daemon, with what the daemon's rule allows it (Info.Allowance), and also for direct
// use, if that is possible; Info.Attach tells the ways apart, and in hints chooses. The
// daemon is the one found by Open: see DomainAttr.Control, in hints Interface.Daemon. If
// its rules keep this program out and nothing else meets the hints, the error names the
// rule, and wraps ErrDenied, too.
//
// Hints with "udp" as Interface.Transport ask for UDP sockets (TransportUDP) in place of
// AF_XDP: each interface that is up is listed once for each version of IP, the loopback
// interface too, and Fabric.OpenInfo opens it at the address of the info alone. Without
// that hint no UDP sockets are listed.
//
// Daemons are asked all at the same time. Of one that does not answer within 10 s, being
// stopped or overloaded, the list has what the kernel tells of its interface, behind all
// that can be opened for the same type of endpoints; Info.Missing names the daemon and
// the remedy, and Info.Allowance says nothing. If ctx ends first, the error is its cause.
//
// It only reads: it opens nothing, sends nothing, but to look up names of hosts in
// Info.Source and Info.Dest, and needs no privilege. Info.Missing names the privileges
// that the caller lacks to open an interface. If nothing meets the hints, the error wraps
// ErrNoInfo and names every hint that is not met, and every interface that cannot be
// used. An interface that this process has open is listed as it is in use, with
// Domain.Instance.
func GetInfo(ctx context.Context, hints *Info) ([]Info, error) {
	if err := errno.NoContext(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, context.Cause(ctx)
	}
	if hints == nil {
		hints = &Info{}
	}
	h, source, dest, err := hints.addressed(ctx)
	if err != nil {
		return nil, err
	}
	var reasons []string
	offers, unusable, err := h.offers(ctx)
	if err != nil {
		return nil, err
	}
	var list []Info
	for _, o := range offers {
		if why := h.refusals(&o); why != nil {
			if o.Endpoint.Type == EndpointRDM || h.Endpoint.Type == EndpointMsg { // others say no more than these
				reasons = append(reasons, why...)
			}
		} else if !slices.ContainsFunc(list, o.sameWay) {
			i := h.settle(&o)
			i.Dest = dest
			i.Source = numbered(i.Source, source.Endpoint)
			list = append(list, i)
		}
	}
	if list == nil {
		slices.Sort(reasons)
		return nil, nothing(slices.Compact(reasons), unusable)
	}
	slices.SortStableFunc(list, func(a, b Info) int { return a.rank() - b.rank() })
	return list, nil
}

// nothing is the error of hints that nothing meets.
func nothing(reasons []string, unusable []error) error {
	kind := ErrNoInfo
	for _, err := range unusable {
		reasons = append(reasons, err.Error())
		if errors.Is(err, ErrDenied) {
			kind = fmt.Errorf("%w: %w", ErrNoInfo, ErrDenied)
		}
	}
	return fmt.Errorf("xdpfab: %s: %w", strings.Join(reasons, "; "), kind)
}

// sameWay reports whether another info differs in the source address alone.
func (i *Info) sameWay(other Info) bool {
	return i.Domain.Name == other.Domain.Name && i.Attach == other.Attach && i.AddrFormat == other.AddrFormat &&
		i.Endpoint.Type == other.Endpoint.Type
}

// rank orders infos: those that can be opened now come first, of these the ones through a
// daemon, which Open would choose, and then the faster ones.
func (i *Info) rank() int {
	rank := 0
	for bit, worse := range []bool{
		i.AddrFormat != AddrEthernet, i.Interface.Copy != "zero-copy", i.Interface.XDP == "generic",
		i.Attach == AttachNever, len(i.Missing) > 0, i.Endpoint.Type == EndpointMsg,
	} {
		if worse {
			rank |= 1 << bit
		}
	}
	return rank
}

// offers lists all that there is, or all that there is of the domain that the hints name,
// and the reasons why interfaces and daemons cannot be used.
func (h *Info) offers(ctx context.Context) (list []Info, unusable []error, err error) {
	if d := h.Domain.Instance; d != nil {
		if err := d.node.End.Returned(); err != nil {
			return nil, nil,
				fmt.Errorf("xdpfab: %w: want hints with an open domain as Domain.Instance, or with none", err)
		}
		return h.types(d.offer()), nil, nil
	}
	list, unusable, err = h.ways(ctx)
	if err != nil {
		return nil, nil, err
	}
	list = h.types(list...)
	if len(list) == 0 && len(unusable) == 0 {
		unusable = []error{fmt.Errorf("domain_attr.name %q: no such interface in this network namespace",
			h.Domain.Name)}
	}
	return list, unusable, nil
}

// types returns, for offers of reliable datagram endpoints, those of the types of
// endpoints that the hints may mean: with those of connected ones, or these alone.
func (h *Info) types(list ...Info) []Info {
	if h.Endpoint.Type != EndpointMsg && h.Endpoint.Type != EndpointUnspec {
		return list
	}
	var msg []Info
	for i := range list {
		msg = append(msg, list[i].connected())
	}
	if h.Endpoint.Type == EndpointMsg {
		return msg
	}
	return append(list, msg...)
}

// connected returns the offer for connected endpoints in place of reliable datagram ones:
// they have one peer, and so no contexts and no sources to tell apart.
func (i *Info) connected() Info {
	c := *i.Clone()
	c.Endpoint.Type, c.Endpoint.TXContexts, c.Endpoint.RXContexts = EndpointMsg, 1, 1
	c.Domain.MaxErrData = CMDataSize
	const many = CapNamedRX | CapSource | CapSourceErr | CapDirectedRecv | CapAVUserID
	c.Caps, c.Transmit.Caps, c.Receive.Caps, c.Domain.Caps = c.Caps&^many, c.Transmit.Caps&^many, c.Receive.Caps&^many,
		c.Domain.Caps&^many
	return c
}

// offersAt lists an interface with its MAC address, and with those of its IP addresses
// that do not depend on the link.
func offersAt(in InterfaceInfo, networks []netip.Prefix) []Info {
	list := []Info{offer(in, AddrEthernet, in.MAC, "ethernet")}
	for _, p := range networks {
		switch {
		case p.Addr().IsLinkLocalUnicast(): // the kernel alone knows which link
		case p.Addr().Is4():
			list = append(list, offer(in, AddrIPv4, p.Addr().String(), p.Masked().String()))
		default:
			list = append(list, offer(in, AddrIPv6, p.Addr().String(), p.Masked().String()))
		}
	}
	return list
}

// offer is what xdpfab has to offer on an interface: the one place that says it. What the
// caller can choose is at its greatest.
func offer(in InterfaceInfo, format AddrFormat, source, fabric string) Info {
	in.UDP = format == AddrIPv4 || format == AddrIPv6
	queues := Limit(in.Queues)
	return Info{
		Caps: offeredCaps, AddrFormat: format, Source: source, Interface: in, Attach: AttachNever,
		Allowance: everything(),
		Transmit: TransmitInfo{
			Caps: transmitCaps, OpFlags: defaultFlags, MsgOrder: offeredOrder,
			InjectSize: injectSize, Size: maxQueue, IOVLimit: MaxPieces, RMAIOVLimit: math.MaxUint32,
		},
		Receive: ReceiveInfo{
			Caps: receiveCaps, OpFlags: defaultReceiveFlags, MsgOrder: offeredOrder,
			TotalBufferedRcv: maxBuffered, Size: maxQueue, IOVLimit: MaxPieces,
		},
		Endpoint: EndpointInfo{
			Type: EndpointRDM, Protocol: ProtocolXDPFab, ProtocolVersion: wire.Version, MaxMsgSize: math.MaxUint32,
			MemTagFormat: math.MaxUint64,
			AtomicOrder:  OrderSizes{Unlimited, Unlimited, Unlimited},
			RMAOrder:     OrderSizes{Unlimited, Unlimited, Unlimited}, TXContexts: MaxContexts, RXContexts: MaxContexts,
		},
		Domain: DomainInfo{
			Name: in.Name, Threading: ThreadSafe, ControlProgress: ProgressAuto, Progress: ProgressAuto,
			ResourceMgmt: RMEnabled,
			AVType:       AVTable, MRKeySize: 8, CQDataSize: 8, CQs: Unlimited, Endpoints: maxEndpoints,
			TXContexts: queues,
			RXContexts: queues,
			MaxEPTX:    MaxContexts, MaxEPRX: MaxContexts, MaxEPSharedTX: maxEndpoints, MaxEPSharedRX: maxEndpoints,
			Counters: Unlimited, MRIOVLimit: 1, Caps: domainCaps, MRs: Unlimited, AuthKeySize: mr.MaxAuthKey,
			MaxCounter: math.MaxUint64, MaxErrCounter: math.MaxUint64,
		},
		Fabric: FabricInfo{Name: fabric, Provider: "xdpfab", ProviderVersion: providerVersion, API: APIVersion},
	}
}

// maxEndpoints is how many numbers of endpoints there are.
const maxEndpoints = 1 << 16

// providerVersion is that of internal/version, without what follows it there.
const providerVersion Version = 0<<16 | 1

// opened are the domains of this process that are open on interfaces, with the place of
// each. GetInfo describes them in place of an interface that is in use.
var opened struct {
	sync.Mutex
	at map[node.Place]*Domain
}

// ours adds to an error of opening an interface that this process itself has it open, if
// it has.
func ours(ifname string, err error) error {
	i, unknown := net.InterfaceByName(ifname)
	if unknown != nil || instance(node.Here(i.Index)) == nil {
		return err
	}
	return errno.Refuse(errors.Join(ErrBusy, err), "a domain of this process has %s by AF_XDP, and one at a time can "+
		"have it: use that one, which fi.GetInfo returns as DomainInfo.Instance, or close it", ifname)
}

// enter and leave note that a domain is open, and that it no longer is.
func (d *Domain) enter(p node.Place) {
	opened.Lock()
	defer opened.Unlock()
	if opened.at == nil {
		opened.at = map[node.Place]*Domain{}
	}
	opened.at[p] = d
	d.node.Place = p
}

func (d *Domain) leave() {
	opened.Lock()
	defer opened.Unlock()
	if opened.at[d.node.Place] == d {
		delete(opened.at, d.node.Place)
	}
}

// instance returns the domain that is open at a place, or nil. One whose interface was
// lost is not.
func instance(p node.Place) *Domain {
	opened.Lock()
	defer opened.Unlock()
	if d := opened.at[p]; d != nil && d.Err() == nil {
		return d
	}
	return nil
}

// Probe is what an interface gave when it was opened for an instant.
type Probe struct {
	// InterfaceInfo describes it as a domain would that has opened it.
	InterfaceInfo
	// Refused reports what was tried before, and why the driver or the kernel refused it:
	// native XDP, zero-copy. It is empty if the fastest modes can be had.
	Refused []string `json:"refused"`
	// OpeningSeconds is how long it took until the interface was open and could send.
	// Drivers of NICs may take the carrier away meanwhile.
	OpeningSeconds float64 `json:"opening_seconds"`
}

// ProbeInterface reports what an interface of the calling thread's network namespace
// would give to a domain. GetInfo says what its driver promises; only binding shows what
// a queue really gets. So it opens the interface, on all queues, in native mode or else
// in generic mode, with zero-copy or else without, and closes it again at once.
//
// It takes the privileges of Open. For the moment the XDP program is attached; all other
// traffic reaches the kernel as before, but a NIC may lose its carrier for a second or
// more, as it does when it is opened. An interface that has an XDP program already, such
// as that of a daemon, is left alone, with EBUSY; Domain.Interface describes one that is
// open, also through a daemon. Nothing is left behind, not even if the process is killed.
func ProbeInterface(ctx context.Context, ifname string) (Probe, error) { return probe(ctx, ifname) }
