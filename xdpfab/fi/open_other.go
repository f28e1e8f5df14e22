// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package fi

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/udpnode"
)

func openAttached(context.Context, string, string, bool) (node.Device, error) {
	return nil, fmt.Errorf("a daemon takes Linux, this is %s: %w", runtime.GOOS, ErrNoDaemon)
}

// openTransport opens an interface by UDP sockets.
func (a *DomainAttr) openTransport(ctx context.Context, ifname string) (node.Device, *residence.Store, error) {
	if a.Transport == TransportXDP {
		return nil, nil, errno.Refuse(ErrNotImplemented,
			"AF_XDP takes Linux, this is %s: want DomainAttr.Transport udp or auto",
			runtime.GOOS)
	}
	w := udpnode.Wants{Queues: a.Queues, Lend: a.Lend, Spread: a.Spread, Copy: a.Copy != CopyAuto,
		Pin: a.ResidentPin}
	dev, err := udpnode.OpenSockets(ctx, ifname, w, nil)
	if udp, is := dev.(*udpnode.Device); is {
		a.bySockets(ctx, ifname, udp)
	}
	return dev, nil, err
}

func probe(_ context.Context, ifname string) (Probe, error) {
	return Probe{}, fmt.Errorf("xdpfab: probing %s takes Linux, this is %s: %w", ifname, runtime.GOOS,
		ErrNotImplemented)
}

// ways lists how this program can use interfaces by UDP sockets, if the hints ask for
// these, and the reasons why it cannot.
func (h *Info) ways(context.Context) (list []Info, unusable []error, err error) {
	if !h.bySockets() {
		return nil, []error{fmt.Errorf("AF_XDP takes Linux, this is %s: want hints with Interface.Transport %q",
			runtime.GOOS, TransportUDP)}, nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return nil, nil, fmt.Errorf("xdpfab: %w", err)
	}
	var fit []udpnode.Interface
	for _, i := range all {
		addrs, err := i.Addrs()
		if err != nil {
			return nil, nil, fmt.Errorf("xdpfab: interface %s: %w", i.Name, err)
		}
		x := udpnode.Interface{Name: i.Name, MAC: i.HardwareAddr.String(), Index: i.Index, MTU: i.MTU,
			Up: i.Flags&net.FlagUp != 0}
		is := h.Domain.Name == "" || i.Name == h.Domain.Name
		for _, a := range addrs {
			x.Addresses = append(x.Addresses, a.String())
			is = is || strings.HasPrefix(a.String(), h.Domain.Name+"/")
		}
		if is {
			fit = append(fit, x)
		}
	}
	list, unusable = h.sockets(fit)
	return list, unusable, nil
}
