// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/xsk"
)

// TakeOver opens the interface in place of the domain that has handed over, in the same
// process or another. That domain has just closed it, so TakeOver tries again for a while
// if it is still taken, or down. prepare registers the regions, with the keys and
// incarnations that they had, and makes the endpoints. It finds resident memory by the
// names and sizes that NewResidentMemory had, and registers it as it was. The domain
// takes no packets until Resume; a domain that is closed before that tells nobody, so
// that the handover can be opened again.
func TakeOver(ctx context.Context, h *host.Handover, ifname string, attr DomainAttr, admit host.AdmitGuest, prepare func(*Domain) error) (*Domain, error) {
	if is := h.Folder(); attr.ResidentPin != is {
		return nil, fmt.Errorf("xdpfab: takeover with ResidentPin %q: want %q, as in the domain before: %w", attr.ResidentPin, is, ErrNotImplemented)
	}
	attr.Attach = AttachNever
	f, err := NewFabric(attr)
	if err != nil {
		return nil, err
	}
	a := f.attr
	a.life, a.opener = h.Life(), h.OpenDevice
	d, err := openAgain(ctx, func() (*Domain, error) { return f.open(ctx, ifname, a) })
	if err != nil {
		return nil, err
	}
	return d.inherit(h, admit, prepare)
}

// inherit gives a new domain what the handover has, or closes it.
func (d *Domain) inherit(h *host.Handover, admit host.AdmitGuest, prepare func(*Domain) error) (*Domain, error) {
	if err := h.Fill(d.node, admit, func() error { return prepare(d) }); err != nil {
		return nil, errors.Join(fmt.Errorf("xdpfab: takeover: %w", err), d.CloseAll())
	}
	return d, nil
}

const (
	// freeAgain is how long an interface may stay taken after its domain was closed, or
	// down.
	freeAgain = 5 * time.Second
	// queueFree is how long a queue may: the kernel gives it back in a work item of its
	// own, and many others come first on a busy machine. The former daemon has nothing
	// else to go back to.
	queueFree = 20 * time.Second
)

// openAgain opens an interface as soon as it is free, and up.
func openAgain(ctx context.Context, open func() (*Domain, error)) (*Domain, error) {
	for began := time.Now(); ; time.Sleep(drainPoll) {
		d, err := open()
		patience := time.Duration(0)
		switch {
		case errors.Is(err, xsk.ErrQueueBusy):
			patience = queueFree
		case errors.Is(err, errno.Busy), errors.Is(err, xsk.ErrInterfaceDown):
			patience = freeAgain
		}
		if time.Since(began) >= patience || ctx.Err() != nil {
			return d, err
		}
	}
}

// Resume puts a domain to work that was opened by TakeOver, or with
// DomainAttr.ResidentPin: packets are taken, and guests served. From then on the handover
// must not be opened again. What was found in ResidentPin or in the handover, and that no
// region was registered for, ends; so do the sessions to endpoints that there are none
// of.
func (d *Domain) Resume() {
	residence.Of(d.node).GoOn()
	if from, is := d.node.Dev.(node.Lender); is {
		from.Settle()
	}
	serve := func() {}
	if host := d.node.Host(); host != nil {
		serve = host.Arrivals()
	}
	d.node.Paused.Store(false)
	for _, st := range d.node.Steppers {
		st.Call(st.Eng.Resume)
	}
	serve()
}
