// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/xdpfab/xdpfab/internal/nic"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/udpnode"
)

// What GetInfo finds out about the interfaces of the calling thread's network namespace,
// and about those that daemons serve: what this program would have as a guest.

// ways lists how this program can use interfaces, and the reasons why it cannot.
func (h *Info) ways(ctx context.Context) (list []Info, unusable []error, err error) {
	machine, err := nic.Machine()
	if err != nil {
		return nil, nil, fmt.Errorf("xdpfab: %w", err)
	}
	interfaces, err := nic.List()
	if err != nil {
		return nil, nil, fmt.Errorf("xdpfab: %w", err)
	}
	interfaces = named(interfaces, h.Domain.Name)
	attached, refused := h.attachable(ctx, &machine, interfaces)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	direct, unusable := h.direct(&machine, interfaces)
	return append(attached, direct...), append(unusable, refused...), nil
}

// plain describes interfaces for UDP sockets.
func plain(all []nic.Interface) (list []udpnode.Interface) {
	for _, i := range all {
		list = append(list, udpnode.Interface{Name: i.Name, MAC: i.MAC, Index: i.Index, MTU: i.MTU, Up: i.Up,
			Addresses: i.Addresses})
	}
	return list
}

// daemonOffer is what one daemon offers.
type daemonOffer struct {
	share.Offer
	info node.InterfaceInfo
}

// infos lists the ways to use the daemon's interface.
func (o *daemonOffer) infos() []Info {
	list := offersAt(InterfaceInfo(o.info), o.Networks)
	for n := range list {
		list[n].guest(&o.Offer)
		list[n].Interface.UDP = o.info.UDP // the daemon's, which serves both
		list[n].Missing = []string{}
	}
	return list
}

// direct lists what the hints may mean of interfaces that this process has open, or can
// open, and returns why it cannot use others.
func (h *Info) direct(machine *nic.System, interfaces []nic.Interface) (list []Info, unusable []error) {
	if h.Attach == AttachAlways {
		return nil, nil
	}
	if h.bySockets() {
		return h.sockets(plain(interfaces))
	}
	for _, i := range interfaces {
		plan := machine.Plan(&i, nic.Want{})
		for _, p := range plan.Problems {
			unusable = append(unusable, errors.New(p))
		}
		if d := instance(node.Here(i.Index)); d != nil {
			list = append(list, d.offer())
		} else if plan.Usable {
			list = append(list, offersOf(&i, &plan)...)
		}
	}
	return list, unusable
}

// named returns the interfaces of that name, or with that address, or all if there is
// none.
func named(all []nic.Interface, name string) []nic.Interface {
	return slices.DeleteFunc(all, func(i nic.Interface) bool {
		return name != "" && i.Name != name && !slices.ContainsFunc(i.Addresses, func(cidr string) bool {
			return strings.HasPrefix(cidr, name+"/")
		})
	})
}

// offersOf lists an interface that is fit for use with each of its addresses.
func offersOf(i *nic.Interface, plan *nic.Plan) []Info {
	in := InterfaceInfo{Name: i.Name, Index: i.Index, MAC: i.MAC, MTU: i.MTU, Driver: i.Driver, Queues: plan.Queues,
		XDP: plan.XDP, Copy: plan.Copy, Chunk: plan.Chunk,
		Transport: TransportXDP.String()}
	missing := []string{}
	if err := plan.Missing(); err != nil {
		missing = append(missing, err.Error())
	}
	if plan.XDP == "generic" {
		missing = append(missing,
			"the driver has no native XDP: set DomainAttr.Generic to use the slow one of the kernel")
	}
	var networks []netip.Prefix
	for _, cidr := range i.Addresses {
		if p, err := netip.ParsePrefix(cidr); err == nil {
			networks = append(networks, p)
		}
	}
	list := offersAt(in, networks)
	for n := range list {
		list[n].Missing = missing
	}
	return list
}
