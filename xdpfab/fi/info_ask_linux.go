// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	guestpkg "github.com/xdpfab/xdpfab/internal/guest"
	"github.com/xdpfab/xdpfab/internal/nic"
)

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

// askAll has ask called for all of them at the same time. It returns when all calls have.
func askAll(list []daemonAt, ask func(path string) (*daemonOffer, error)) {
	var wg sync.WaitGroup
	for n := range list {
		wg.Go(func() { list[n].offer, list[n].err = ask(list[n].path) })
	}
	wg.Wait()
}

// askDaemon asks the daemon at a control socket what it offers this program.
func askDaemon(ctx context.Context, path string, within time.Duration) (o *daemonOffer, err error) {
	silent := fmt.Errorf("it has not said within %v what it offers this program: %w", within, guestpkg.ErrHostSilent)
	ctx, cancel := context.WithTimeoutCause(ctx, within, silent)
	defer cancel()
	talk, err := guestpkg.DialHost(ctx, path)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		<-ctx.Done() // its timer may be later than the socket's
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
	askAll(daemons, func(path string) (*daemonOffer, error) { return askDaemon(ctx, path, offerWithin) })
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
