// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package fi

import (
	"context"
	"fmt"
	"runtime"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/udpnode"
)

func openAttached(context.Context, string, string, bool) (node.Device, error) {
	return nil, fmt.Errorf("a daemon takes Linux, this is %s: %w", runtime.GOOS, ErrNoDaemon)
}

// openTransport opens an interface by UDP sockets.
func (a *DomainAttr) openTransport(ctx context.Context, ifname string) (node.Device, *residence.Home, error) {
	if a.Transport == TransportXDP {
		return nil, nil, fmt.Errorf("AF_XDP takes Linux, this is %s: want DomainAttr.Transport udp or auto: %w",
			runtime.GOOS, ErrNotImplemented)
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
