// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"cmp"
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// OpenInfo opens what an info from GetInfo describes (fi_domain). The fabric and attr
// have what an info does not say; about progress, EthernetOnly, the transport and memory
// registration the info decides, and another transport is refused. It fails with
// ErrNoInfo if the info promises what is not, or no longer, offered. In all else it is
// OpenDomain.
func (f *Fabric) OpenInfo(ctx context.Context, info *Info, attr DomainAttr) (*Domain, error) {
	if err := f.there(); err != nil {
		return nil, err
	}
	if info == nil {
		return nil, errno.Refuse(ErrNoInfo, "xdpfab: no info is given: want one that GetInfo returned")
	}
	hints := info.Clone()
	hints.Interface = InterfaceInfo{MAC: info.Interface.MAC, Daemon: info.Interface.Daemon} // the rest was a prediction
	sockets := info.bySockets()
	if sockets {
		hints.Interface.Transport, hints.Interface.Address = info.Interface.Transport, info.Interface.Address
	}
	hints.Allowance.Rule = ""   // another one may allow as much
	hints.Domain.Instance = nil // it describes one that was open
	if hints.Domain.Name == "" {
		return nil, errno.Refuse(ErrNoInfo, "xdpfab: the info names no interface: want one that GetInfo returned")
	}
	a := f.attr.with(attr)
	if err := info.agrees(&a); err != nil {
		return nil, err
	}
	offers, err := GetInfo(ctx, hints)
	if err != nil {
		return nil, err
	}
	name := info.Domain.Name
	if a = info.domainAttr(a); sockets {
		a.Transport, name = TransportUDP, offers[0].Interface.Address
	}
	return f.open(ctx, name, a)
}

// agrees refuses attributes that want another way than the info describes.
func (i *Info) agrees(a *DomainAttr) error {
	daemon := i.Interface.Daemon
	if i.Attach != AttachAuto && a.Attach != AttachAuto && a.Attach != i.Attach ||
		daemon != "" && a.Control != "" && a.Control != daemon {
		return errno.Refuse(ErrNoInfo,
			"xdpfab: the info is of the way \"attach %v\" by the daemon %q, the attributes want "+
				"\"attach %v\" and %q: choose another info, or leave them out",
			i.Attach, daemon, a.Attach, a.Control)
	}
	return i.carries(a.Transport)
}

// domainAttr returns attributes with what the info says in place of their own.
func (i *Info) domainAttr(a DomainAttr) DomainAttr {
	a.Progress, a.Threading, a.MRMode = i.Domain.Progress, i.Domain.Threading, i.Domain.MRMode
	a.TrafficClass = i.Domain.TrafficClass.or(a.TrafficClass)
	a.AuthKey = i.Domain.AuthKey.or(a.AuthKey)
	a.EthernetOnly = i.AddrFormat != AddrIPv4 && i.AddrFormat != AddrIPv6 && i.Interface.Daemon == ""
	if i.Attach != AttachAuto {
		a.Attach = i.Attach
	}
	a.Control = cmp.Or(i.Interface.Daemon, a.Control)
	a.encap = encap{format: i.AddrFormat, source: i.Source, fabric: i.Fabric.Name}
	return a
}

// EndpointAttr returns the attributes of an endpoint as the info describes it, with the
// number that is in its source address. An endpoint that peers cannot address gets
// AnyNumber, and so does one through a daemon, unless the number is another than 0.
func (i *Info) EndpointAttr() EndpointAttr {
	a := EndpointAttr{Type: i.Endpoint.Type, Request: i.Handle, Size: int(i.Transmit.Size),
		InjectSize: int(i.Transmit.InjectSize), MsgOrder: i.Transmit.MsgOrder,
		OpFlags: i.Transmit.OpFlags, TrafficClass: i.Transmit.TrafficClass, AuthKey: i.Endpoint.AuthKey.or(nil),
		ReceiveSize: int(i.Receive.Size), ReceiveFlags: i.Receive.OpFlags,
		BufferedReceive: int(i.Receive.TotalBufferedRcv)}
	a.SourceErr = i.Caps&CapSourceErr != 0
	if i.Receive.Size > 0 && i.Receive.TotalBufferedRcv == 0 { // in force, and not left open
		a.BufferedReceive = -1
	}
	a.Number = i.number()
	switch {
	case i.Handle != nil:
		a.Number = AnyNumber
	case i.Caps&targetCaps == 0 && i.Endpoint.Type != EndpointMsg:
		a.InitiateOnly, a.Number = true, AnyNumber
	}
	return a
}

// ScalableAttr returns the attributes of a scalable endpoint as the info describes it: as
// many contexts as the hints asked for, and the number that is in its source address.
func (i *Info) ScalableAttr() ScalableAttr {
	a := ScalableAttr{TXContexts: int(max(i.Endpoint.TXContexts, 1)), RXContexts: int(max(i.Endpoint.RXContexts, 1))}
	a.Number = i.number()
	return a
}

// number returns the number of an endpoint in the source address. Number 0 through a
// daemon leaves it open, since the daemon itself may have that one.
func (i *Info) number() int {
	source, err := wire.ParseAddr(i.Source)
	switch {
	case err != nil:
		return 0
	case i.Attach == AttachAlways && source.Endpoint == 0:
		return AnyNumber
	}
	return int(source.Endpoint)
}

// encap is the encapsulation that a domain was opened for.
type encap struct {
	format         AddrFormat
	source, fabric string
}

// offer describes the domain as GetInfo does: what the caller can choose is at its
// greatest.
func (d *Domain) offer() Info {
	in, e := d.Interface(), d.attr.encap
	switch {
	case in.Address != "":
		e = socketEncap(d.node.Dev, in.Address)
	case e.format == AddrUnspec:
		e = encap{AddrEthernet, in.MAC, "ethernet"}
	}
	i := offer(in, e.format, e.source, e.fabric)
	i.Interface = in
	i.Domain.Instance = d
	if in.Daemon != "" {
		i.Attach = AttachAlways
	}
	if allowed := d.node.Dev.Allowed(); allowed != nil {
		i.guest(allowed)
	}
	i.Domain.Progress, i.Domain.Threading, i.Domain.MRMode = d.attr.Progress, d.attr.Threading, d.attr.MRMode
	i.Domain.TrafficClass, i.Domain.AuthKey = d.attr.TrafficClass, d.attr.AuthKey
	return i
}

// Info returns what is in force: what the domain's endpoints can do by their default
// attributes. A domain that was not opened from an info is described for raw Ethernet.
func (d *Domain) Info() Info {
	o := d.offer()
	return (&Info{}).settle(&o)
}

// Info returns what is in force for the endpoint.
func (ep *Endpoint) Info() Info {
	o := ep.dom.offer()
	if ep.conn != nil {
		o = o.connected()
	}
	hints := Info{Endpoint: EndpointInfo{AuthKey: ep.attr.AuthKey}, Transmit: TransmitInfo{Size: Limit(ep.attr.Size),
		MsgOrder: ep.attr.MsgOrder, OpFlags: ep.OpFlags(), TrafficClass: ep.attr.TrafficClass}}
	if x := ep.sharedTransmit(); x != nil {
		hints.Endpoint.TXContexts = SharedContext
		hints.Transmit.Size = min(hints.Transmit.Size, Limit(x.size))
	}
	hints.Receive = ReceiveInfo{Size: Limit(ep.attr.ReceiveSize), OpFlags: ep.attr.ReceiveFlags}
	buffered := ep.attr.BufferedReceive
	if x := ep.sharedReceives(); x != nil {
		hints.Endpoint.RXContexts, buffered = SharedContext, x.attr.BufferedReceive
		hints.Receive = ReceiveInfo{Size: Limit(x.attr.ReceiveSize), OpFlags: x.attr.ReceiveFlags}
	}
	switch {
	case ep.attr.InitiateOnly:
		hints.Caps = initiatingCaps
	case ep.attr.SourceErr:
		hints.Caps = CapSourceErr
	}
	i := hints.settle(&o)
	i.Receive.TotalBufferedRcv = Limit(max(buffered, 0))
	i.Source = numbered(i.Source, ep.number)
	return i
}

// numbered returns the address of an endpoint, from that of endpoint 0.
func numbered(source string, endpoint uint16) string {
	if endpoint == 0 {
		return source
	}
	return fmt.Sprintf("%s/%d", source, endpoint)
}
