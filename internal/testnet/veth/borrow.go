// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/dump"
)

// loan is a NIC that a pair has taken from its namespace, and how it was before.
type loan struct {
	name  string
	index int
	mtu   int
	mac   net.HardwareAddr
}

// borrowed is held while a pair of this process has NICs.
var borrowed sync.Mutex

// ErrOnePair means that there is a pair of the NICs already.
var ErrOnePair = errors.New("there are two NICs, and a pair has them")

// Borrow builds a pair of two NICs of the caller's network namespace that are joined to
// each other. Each is renamed to IfName. Close gives them back as they were, but down. On
// error nothing is left behind. It refuses NICs that the machine uses, with ErrInUse.
//
// If the process dies before, the kernel moves the NICs to the machine's first namespace.
func Borrow(names [2]string, o Options) (p *Pair, err error) {
	if !borrowed.TryLock() {
		return nil, fmt.Errorf("veth: %w", ErrOnePair)
	}
	home, err := netns.Get()
	if err != nil {
		borrowed.Unlock()
		return nil, fmt.Errorf("veth: reading the thread's namespace: %w", err)
	}
	if err := lendable(home, names); err != nil {
		borrowed.Unlock()
		return nil, errors.Join(err, home.Close())
	}
	p, err = empty()
	if err != nil {
		err = errors.Join(err, home.Close())
		borrowed.Unlock()
		return nil, err
	}
	p.give = func() error {
		defer borrowed.Unlock()
		errs := []error{}
		for _, s := range p.sides() {
			errs = append(errs, s.giveBack(home))
		}
		return errors.Join(append(errs, home.Close())...)
	}
	for i, s := range p.sides() {
		if err := s.take(names[i], home, o); err != nil {
			return nil, errors.Join(fmt.Errorf("veth: borrowing %s: %w", names[i], err), p.Close())
		}
	}
	if err := p.start(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// take moves a NIC into the side's namespace.
func (s *Side) take(name string, home netns.NsHandle, o Options) error {
	h, err := netlink.NewHandleAt(home, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := h.LinkByName(name)
	if err != nil {
		return err
	}
	a := l.Attrs()
	if err := errors.Join(h.LinkSetDown(l), h.LinkSetNsFd(l, int(s.NS))); err != nil {
		return err
	}
	s.loan = &loan{name, a.Index, a.MTU, a.HardwareAddr}
	in, err := netlink.NewHandleAt(s.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer in.Close()
	if l, err = in.LinkByName(name); err != nil {
		return err
	}
	if err := in.LinkSetName(l, IfName); err != nil {
		return err
	}
	if o.MTU != 0 {
		if err := in.LinkSetMTU(l, o.MTU); err != nil {
			return fmt.Errorf("MTU %d: %w", o.MTU, err)
		}
	}
	// A driver brings all its queues back when the NIC is set up, so they are chosen
	// while it is down. One that has only one number of queues cannot be asked.
	err = s.Do(func() error { return setQueues(l.Attrs().Index, max(o.Queues, 1)) })
	switch {
	case errors.Is(err, unix.EOPNOTSUPP) && o.Queues <= 1:
		return nil
	case errors.Is(err, unix.EINVAL):
		return fmt.Errorf("%w: the NIC has fewer, or a table that a test has left leads to more: "+
			"ethtool -X %s default", err, IfName)
	}
	return err
}

// giveBack moves a NIC back to where it was.
func (s *Side) giveBack(home netns.NsHandle) error {
	if s.loan == nil {
		return nil
	}
	was := s.loan
	s.loan = nil
	h, err := netlink.NewHandleAt(s.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := only(h)
	if err != nil {
		return err
	}
	detach := func() error { return netlink.LinkSetXdpFd(l, -1) }
	err = errors.Join(h.LinkSetDown(l), s.Do(detach), h.SetPromiscOff(l), h.LinkSetMTU(l, was.mtu),
		h.LinkSetHardwareAddr(l, was.mac), h.LinkSetName(l, was.name), h.LinkSetNsFd(l, int(home)))
	if err != nil {
		return fmt.Errorf("giving %s back: %w", was.name, err)
	}
	return nil
}

// only returns the NIC of a namespace that has no other, whatever its name has become.
func only(h *netlink.Handle) (netlink.Link, error) {
	links, err := dump.Whole(h.LinkList)
	if err != nil {
		return nil, err
	}
	for _, l := range links {
		if (l.Type() == "device" || l.Type() == "veth") && l.Attrs().Flags&net.FlagLoopback == 0 {
			return l, nil
		}
	}
	return nil, fmt.Errorf("the NIC has gone: %w", os.ErrNotExist)
}

// ErrInUse means that a machine uses the interface that was to be borrowed.
var ErrInUse = errors.New("the machine uses it")

// lendable refuses interfaces of a namespace that anything but tests may need.
func lendable(home netns.NsHandle, names [2]string) error {
	h, err := netlink.NewHandleAt(home, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, name := range names {
		l, err := h.LinkByName(name)
		if err == nil {
			err = unused(h, l)
		}
		if err != nil {
			return fmt.Errorf("veth: borrowing %s: %w", name, err)
		}
	}
	return nil
}

// unused refuses an interface with an address, a route, an XDP program, or another
// interface above it.
func unused(h *netlink.Handle, l netlink.Link) error {
	a := l.Attrs()
	in := func(format string, args ...any) error {
		return fmt.Errorf("%s %w: want an interface without addresses, routes and users",
			fmt.Sprintf(format, args...), ErrInUse)
	}
	addrs, err := h.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for _, addr := range addrs {
		if !addr.IP.IsLinkLocalUnicast() {
			return in("it has the address %s:", addr.IPNet)
		}
	}
	routes, err := h.RouteList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	for i := range routes {
		if leadsTo(&routes[i], a.Index) {
			return in("it has the route %s:", routes[i])
		}
	}
	links, err := h.LinkList()
	if err != nil {
		return err
	}
	for _, other := range links {
		// A veth names its peer as the interface below it.
		if o := other.Attrs(); o.ParentIndex == a.Index && o.Index != a.Index && other.Type() != "veth" {
			return in("%s is on top of it:", o.Name)
		}
	}
	switch {
	case a.MasterIndex != 0:
		return in("it is a part of interface %d:", a.MasterIndex)
	case a.Xdp != nil && a.Xdp.Attached:
		return in("it has the XDP program %d:", a.Xdp.ProgId)
	}
	return nil
}

// leadsTo reports whether a route, link-local ones aside, goes by an interface.
func leadsTo(r *netlink.Route, index int) bool {
	if r.Dst != nil && (r.Dst.IP.IsLinkLocalUnicast() || r.Dst.IP.IsMulticast()) {
		return false
	}
	for _, hop := range r.MultiPath {
		if hop.LinkIndex == index {
			return true
		}
	}
	return r.LinkIndex == index
}
