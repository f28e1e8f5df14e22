// SPDX-License-Identifier: Apache-2.0

// Package udpnode is the device of a node that uses an interface by UDP sockets, and the
// choice between these and AF_XDP.
package udpnode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/udpport"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Device is an interface, or one address of it, as a node uses it by UDP sockets.
type Device struct {
	node.Alone
	*udpport.Device
	NoXDP  error  // why it is not AF_XDP; nil if UDP was asked for
	Beside string // an XDP program that may keep packets from the sockets

	watcher watcher
}

// Ports implements Device.
func (d *Device) Ports() []engine.Port { return []engine.Port{d.Port()} }

// Medium implements Device.
func (d *Device) Medium() wire.Medium { return wire.OnSocket }

// Link implements Device.
func (d *Device) Link(ctx context.Context, a wire.Addr) (wire.Link, error) {
	l, err := d.Device.Link(ctx, a)
	switch {
	case !a.IsIP(): // the address cannot be right here, whatever the peer does
		err = errno.Also(err, errno.Argument)
	case errors.Is(err, udpport.ErrClosed):
		err = fmt.Errorf("%w: %w", errno.Closed, err)
	case errors.Is(err, udpport.ErrNoRoute):
		err = fmt.Errorf("%w: %w", port.ErrNoRoute, err)
	}
	return l, err
}

// Follow implements Device.
func (d *Device) Follow(wire.Addr, wire.Link, func(wire.Link)) (stop func()) { return func() {} }

// Silent implements Device.
func (d *Device) Silent(netip.Addr) {}

// OwnFault implements Device.
func (d *Device) OwnFault(to wire.Addr) string { return d.Device.OwnFault(to.IP) }

// Info implements Device.
func (d *Device) Info() node.InterfaceInfo {
	info := node.InterfaceInfo{
		Name: d.Name(), Index: d.Interface().Index, MAC: wire.Addr{MAC: d.MAC()}.String(), MTU: d.MTU(), Driver: "udp",
		Queues: 1, UDP: true, Transport: UDP.String(), Address: d.Addrs()[0].String(),
	}
	var served []string
	for _, a := range d.Addrs() {
		served = append(served, netip.PrefixFrom(a, d.Network(a).Bits()).String())
	}
	info.Served, info.Beside = strings.Join(served, " "), d.Beside
	if d.NoXDP != nil {
		info.NoXDP = d.NoXDP.Error()
	}
	return info
}

// Disturb implements Disturbable.
func (d *Device) Disturb(f port.Faults) error {
	if f.Delay > 0 {
		return errno.Refuse(errno.NotImplemented, "domain over UDP sockets: delay of %v: want 0", f.Delay)
	}
	d.SetFaults(udpport.Faults{Loss: f.Loss, Duplicate: f.Duplicate, Reorder: f.Reorder, Corrupt: f.Corrupt})
	return nil
}
