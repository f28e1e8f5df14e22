// SPDX-License-Identifier: Apache-2.0

package udpnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/xdpfab/xdpfab/bpf"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/udpport"
	"github.com/xdpfab/xdpfab/xsk"
)

// Transport is what carries the packets of a node.
type Transport uint8

// The transports; Auto is XDP where that can be had, otherwise UDP.
const (
	XDP Transport = iota
	UDP
	Auto
)

// String returns the text.
func (t Transport) String() string { return [...]string{XDP: "xdp", UDP: "udp", Auto: "auto"}[t] }

// Open opens an interface by a transport, with the home of what is resident there: see
// residence.Open. Auto makes no home on UDP sockets.
func Open(ctx context.Context, ifname string, t Transport, pin string, spread bool, o port.Options) (
	node.Device, *residence.Home, error,
) {
	if t == UDP {
		dev, err := open(ifname, pin, spread, o, nil)
		return dev, nil, err
	}
	o.UDP = o.UDP || t == Auto
	dev, at, err := residence.Open(ctx, ifname, pin, o)
	if errors.Is(err, port.ErrSockets) {
		err = fmt.Errorf("%w: %w", errno.Busy, err)
	}
	switch {
	case err == nil, taken(err), ctx.Err() != nil:
		return dev, at, err
	case t == XDP:
		return nil, nil, remedy(err)
	}
	udp, second := open(ifname, "", spread, o, err)
	if second != nil {
		return nil, nil, fmt.Errorf("%w; nor by UDP sockets: %w", err, second)
	}
	return udp, nil, nil
}

// check refuses what only an XDP program can do.
func check(pin string, spread bool, o *port.Options) error {
	var field string
	switch {
	case o.Queues > 1:
		return fmt.Errorf("domain over UDP sockets: %d queues: want 1, or 0, since it has one: %w", o.Queues,
			errno.NotImplemented)
	case o.Lend > 0:
		field = "Lend"
	case spread:
		field = "Spread"
	case pin != "":
		field = "ResidentPin"
	case o.Copy != xsk.Auto:
		field = "Copy"
	default:
		return nil
	}
	return fmt.Errorf("domain over UDP sockets: DomainAttr.%s: want it zero, or TransportXDP: %w", field,
		errno.NotImplemented)
}

// open opens an interface by UDP sockets. noXDP is why it is not AF_XDP.
func open(name, pin string, spread bool, o port.Options, noXDP error) (node.Device, error) {
	if err := check(pin, spread, &o); err != nil {
		return nil, err
	}
	dev, err := udpport.Open(name, udpport.Options{})
	if errors.Is(err, udpport.ErrInUse) {
		err = fmt.Errorf("%w: %w", errno.Busy, err)
	}
	if err != nil {
		return nil, err
	}
	return &Device{Device: dev, NoXDP: noXDP}, nil
}

// taken reports whether another xdpfab has the interface, or may have it: its XDP
// program would take the frames before UDP sockets see them.
func taken(err error) bool {
	b := new(bpf.BusyError)
	if errors.Is(err, port.ErrSockets) {
		return true
	}
	return errors.As(err, &b) && (b.Name == "" || b.Name == nic.ProgramName) || errors.Is(err, xsk.ErrQueueBusy)
}

// remedy adds to the error of an interface that has no AF_XDP, or not for this process,
// what does without.
func remedy(err error) error {
	for _, lack := range []error{
		fs.ErrPermission, xsk.ErrPermission, xsk.ErrMemlock, xsk.ErrUnsupported, bpf.ErrNoNative, bpf.ErrKernel,
	} {
		if errors.Is(err, lack) {
			return fmt.Errorf("%w; or do without, more slowly, by UDP sockets: DomainAttr.Transport, --transport udp",
				err)
		}
	}
	return err
}
