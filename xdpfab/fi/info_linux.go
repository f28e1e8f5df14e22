// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
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
			"there is generic XDP alone, the slow one of the kernel")
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

// How GetInfo asks daemons: all at once, each within a bound of its own, so that one that
// is stopped holds up no answer of another.

// offerWithin is how long GetInfo waits for one daemon. It is a variable for tests.
var offerWithin = 10 * time.Second

// daemonAt is a daemon that GetInfo asks, and its answer.
type daemonAt struct {
	ifname string // of the interface that it may serve; empty if the caller has named a socket alone
	path   string // of its control socket
	chosen bool   // by the caller

	offer *daemonOffer
	err   error // why there is no offer
}

// askAll has ask called for all of them at the same time, with the network namespace of
// whose daemons one may be asked. It returns when all calls have.
func askAll(list []daemonAt, ask func(path string, namespace uint64) (*daemonOffer, error)) {
	var wg sync.WaitGroup
	for n := range list {
		namespace := guestpkg.Within(list[n].chosen) // on the caller's thread, which is in its namespace
		wg.Go(func() { list[n].offer, list[n].err = ask(list[n].path, namespace) })
	}
	wg.Wait()
}

// askDaemon asks the daemon at a control socket, of a network namespace or of any, what
// it offers this program.
func askDaemon(ctx context.Context, path string, namespace uint64, within time.Duration) (o *daemonOffer, err error) {
	silent := fmt.Errorf("it has not said within %v what it offers this program: %w", within, guestpkg.ErrHostSilent)
	ctx, cancel := context.WithTimeoutCause(ctx, within, silent)
	defer cancel()
	talk, err := guestpkg.DialHost(ctx, path, namespace)
	if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) {
		<-ctx.Done() // its timer may be later than the socket's, and than the clock
	}
	if err != nil && context.Cause(ctx) == silent { // not even the connection was made in time
		return nil, fmt.Errorf("daemon at %s: %w", path, silent)
	}
	if err != nil {
		return nil, err
	}
	defer talk.Close()
	o = &daemonOffer{}
	if o.Offer, err = guestpkg.TermsOf(ctx, talk); err == nil {
		err = json.Unmarshal(o.Interface, &o.info)
	}
	if err != nil {
		return nil, fmt.Errorf("daemon at %s: %w", path, err)
	}
	o.info.Daemon = path
	return o, nil
}

// daemons returns those that Open would find for interfaces that the hints may mean: the
// one whose socket the caller names, or those of the interfaces of this namespace.
func (h *Info) daemons(interfaces []nic.Interface) (list []daemonAt) {
	attr := DomainAttr{Control: h.Interface.Daemon}
	names := []string{h.Domain.Name}
	if _, chosen := attr.control(""); h.Domain.Name == "" && !chosen {
		names = nil
		for _, i := range interfaces {
			names = append(names, i.Name)
		}
	}
	for _, name := range names {
		path, chosen := attr.control(name)
		list = append(list, daemonAt{ifname: name, path: path, chosen: chosen})
	}
	return list
}

// attachable lists what daemons offer, and returns why others cannot be used.
func (h *Info) attachable(ctx context.Context, machine *nic.System, interfaces []nic.Interface) (list []Info,
	unusable []error) {
	if h.Attach == AttachNever {
		return nil, nil
	}
	daemons := h.daemons(interfaces)
	askAll(daemons, func(path string, namespace uint64) (*daemonOffer, error) {
		return askDaemon(ctx, path, namespace, offerWithin)
	})
	for _, a := range daemons { // on the caller's thread, which knows its network namespace
		err := a.err
		if err == nil && (a.ifname != "" || !a.chosen) {
			err = guestpkg.Serves(a.path, a.ifname, a.chosen, &a.offer.info, &a.offer.Attached)
		}
		switch {
		case err == nil:
			list = append(list, a.offer.infos()...)
		case errors.Is(err, guestpkg.ErrHostSilent) && a.ifname != "":
			list, unusable = append(list, a.silent(machine, interfaces)...), append(unusable, err)
		case !errors.Is(err, ErrNoDaemon) || errors.Is(err, fs.ErrPermission) || a.chosen || h.Attach == AttachAlways:
			unusable = append(unusable, err)
		}
	}
	return list, unusable
}

// silent lists the ways through a daemon that has not answered: what the kernel tells of
// them, and what stands in the way. What the daemon allows is not known.
func (a *daemonAt) silent(machine *nic.System, interfaces []nic.Interface) (list []Info) {
	for _, i := range named(interfaces, a.ifname) {
		if !i.Ethernet {
			continue // which no daemon can serve
		}
		plan := machine.Plan(&i, nic.Want{})
		list = append(list, offersOf(&i, &plan)...)
	}
	for n := range list {
		o := &list[n]
		o.Attach, o.Interface.Daemon, o.Missing = AttachAlways, a.path, []string{a.err.Error()}
		o.Interface.Transport = ""                      // not known
		o.Domain.TXContexts, o.Domain.RXContexts = 1, 1 // as for any guest
	}
	return list
}
