// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
)

// Hosting returns the domain as the host of guests.
func (d *Domain) Hosting() *host.Host { return host.On(d.node) }

// TakeOver opens the interface in place of the domain that has handed over: see
// host.TakeOver.
func TakeOver(
	ctx context.Context, h *host.Handover, ifname string, attr DomainAttr, admit host.AdmitGuest, prepare func(*Domain) error,
) (*Domain, error) {
	f, err := NewFabric(attr)
	if err != nil {
		return nil, err
	}
	a := f.attr
	dev, at, err := h.OpenDevice(ctx, ifname, a.ResidentPin, a.options())
	if err != nil {
		return nil, fmt.Errorf("xdpfab: %w", err)
	}
	d, err := f.add(newDomain(f, dev, a, at, h.Life()))
	if err != nil {
		return nil, err
	}
	d.enter(node.Here(dev.Info().Index))
	return d.inherit(h, admit, prepare)
}

// inherit gives a new domain what the handover has, or closes it.
func (d *Domain) inherit(h *host.Handover, admit host.AdmitGuest, prepare func(*Domain) error) (*Domain, error) {
	if err := h.Fill(d.node, admit, func() error { return prepare(d) }); err != nil {
		return nil, errors.Join(fmt.Errorf("xdpfab: takeover: %w", err), d.CloseAll())
	}
	return d, nil
}
