// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"fmt"
	"strings"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/udpnode"
	"github.com/xdpfab/xdpfab/xsk"
)

// The devices of a domain that take Linux.

func openAttached(ctx context.Context, ifname, path string, chosen bool) (node.Device, error) {
	return guest.OpenAttached(ctx, ifname, path, chosen)
}

// openTransport opens an interface by the transport that the attributes ask for, with the
// store of what is resident there. UDP sockets have no resident memory.
func (a *DomainAttr) openTransport(ctx context.Context, ifname string) (node.Device, *residence.Store, error) {
	dev, at, err := udpnode.Open(ctx, ifname, udpnode.Transport(a.Transport), a.ResidentPin, a.Spread,
		a.options(ifname))
	if udp, is := dev.(*udpnode.Device); is {
		a.bySockets(ctx, ifname, udp)
	}
	return dev, at, err
}

var (
	copyModes = [...]xsk.Mode{CopyAuto: xsk.Auto, CopyForce: xsk.Copy, ZeroCopyForce: xsk.ZeroCopy}
	xdpModes  = [...]bpf.Mode{XDPAuto: bpf.Auto, XDPNative: bpf.Native, XDPGeneric: bpf.Generic, XDPAny: bpf.Any}
)

// options say how an interface is opened.
func (a *DomainAttr) options(ifname string) port.Options {
	remember := ""
	if a.BusyPoll.Time > 0 {
		path, _ := a.control(ifname)
		remember = strings.TrimSuffix(path, ".sock") + ".napi"
	}
	return port.Options{Queues: a.Queues, Lend: a.Lend, Copy: copyModes[a.Copy], XDP: xdpModes[a.XDP],
		UDP: !a.EthernetOnly, BusyPoll: a.BusyPoll, Remember: remember, Execute: true}
}

func probe(ctx context.Context, ifname string) (Probe, error) {
	p, err := port.Probe(ctx, ifname, port.Options{UDP: true, Execute: true})
	if err != nil {
		return Probe{}, fmt.Errorf("xdpfab: probing: %w", ours(ifname, err))
	}
	info := Probe{InterfaceInfo: InterfaceInfo(node.NetInterface{Interface: p.Interface}.Info()), Refused: []string{},
		OpeningSeconds: p.Opening.Seconds()}
	info.UDP = false // whether it is on is the caller's choice
	for _, err := range p.Refused {
		info.Refused = append(info.Refused, err.Error())
	}
	return info, nil
}
