// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package way finds the interface that leads to a peer, for a command line that names
// none.
package way

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/control"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// ErrUnclear means that several interfaces, or none, may lead to the peer.
var ErrUnclear = errors.New("no interface is named (-i), and none stands out")

// ErrNoRoute means that no interface leads to the peer, and ErrDown that the one that
// would is down.
var (
	ErrNoRoute = errors.New("no route")
	ErrDown    = errors.New("interface is down")
)

// Choice is an interface that leads to a peer.
type Choice struct {
	Interface string
	Control   string    // socket of the daemon to go through; empty: the interface's own, if there is one
	Why       string    // "the route to 10.0.0.2"
	Peer      wire.Addr // of those that were given
}

// daemon is one that answers at a control socket.
type daemon struct {
	path string
	control.Status
}

// Folder is where daemons have their control sockets.
func Folder() string { return filepath.Dir(control.DefaultPath("any")) }

// Choose finds the interface for a peer with these addresses: that of the daemon whose
// control socket is named; or the one on the route; or for a MAC address that of the only
// daemon, that on which the kernel knows the neighbour, or the only one there is. Without
// an address it is that of the only daemon, or the only one there is. folder has the
// sockets of daemons that nobody has named. A daemon is waited for so long; if the choice
// depends on one that does not answer, the error wraps control.ErrSilent.
func Choose(ctx context.Context, named, folder string, to []wire.Addr, limit time.Duration) (Choice, error) {
	if named != "" {
		d, err := ask(ctx, named, limit)
		if err != nil {
			return Choice{}, err
		}
		return Choice{d.Interface.Name, named, "the daemon at " + named, append(to, wire.Addr{})[0]}, nil
	}
	daemons := here(ctx, folder, limit)
	if len(to) == 0 {
		to = []wire.Addr{{}}
	}
	var first error
	for _, a := range to {
		c, err := choose(daemons, a)
		if err == nil {
			return c, nil
		}
		if first == nil {
			first = err
		}
	}
	return Choice{}, first
}

func choose(daemons found, a wire.Addr) (c Choice, err error) {
	if a.IsIP() {
		c.Interface, err = routeTo(a.IP)
		c.Why = fmt.Sprintf("the route to %v", a.IP)
	} else {
		c.Interface, c.Why, err = towards(daemons.answer, a.MAC)
	}
	if err != nil {
		for _, silent := range daemons.silent {
			err = fmt.Errorf("%w; %w", err, silent)
		}
		return Choice{}, err
	}
	if silent := daemons.silent[c.Interface]; silent != nil {
		return Choice{}, silent
	}
	c.Peer = a
	for _, d := range daemons.answer {
		if d.serves(c.Interface) {
			c.Interface, c.Control = d.Interface.Name, d.path
			c.Why += ", and the daemon at " + d.path
			break
		}
	}
	return c, nil
}

// serves reports whether a daemon has an interface, or one below it whose packets are for
// the addresses of that one.
func (d *daemon) serves(name string) bool {
	if d.Interface.Name == name {
		return true
	}
	for _, above := range strings.Split(d.Interface.Above, ", ") {
		if strings.HasPrefix(above, name+" (") && !strings.Contains(above, "not served") {
			return true
		}
	}
	return false
}

// ask asks the daemon at a control socket for its status, unless it is one that is not
// wanted.
func ask(ctx context.Context, path string, limit time.Duration, unless ...func(*control.Client) bool) (daemon, error) {
	c, err := control.Dial(path)
	if err != nil {
		return daemon{}, err
	}
	defer c.Close()
	for _, not := range unless {
		if not(c) {
			return daemon{}, control.ErrNoDaemon
		}
	}
	c.Patience = limit
	s, err := c.Status(ctx)
	return daemon{path, s}, err
}

// found are the daemons of this network namespace.
type found struct {
	answer []daemon
	silent map[string]error // by the name of the socket, which is that of the interface
}

// here asks the daemons of this network namespace, all at the same time.
func here(ctx context.Context, folder string, limit time.Duration) found {
	paths, _ := filepath.Glob(filepath.Join(folder, "*.sock"))
	all, errs := make([]daemon, len(paths)), make([]error, len(paths))
	var wg sync.WaitGroup
	for n, path := range paths {
		wg.Go(func() { all[n], errs[n] = ask(ctx, path, limit, (*control.Client).Elsewhere) })
	}
	wg.Wait()
	f := found{silent: map[string]error{}}
	for n, d := range all { // on this thread, which knows its network namespace
		switch {
		case errs[n] == nil && !d.Elsewhere():
			f.answer = append(f.answer, d)
		case errors.Is(errs[n], control.ErrSilent):
			f.silent[strings.TrimSuffix(filepath.Base(paths[n]), ".sock")] = errs[n]
		}
	}
	return f
}

// Instead returns the interface that the route to an address leads by, if it is another
// one than that which was named, and else nothing.
func Instead(named string, to wire.Addr) string {
	if !to.IsIP() {
		return ""
	}
	if other, err := routeTo(to.IP); err == nil && other != named {
		return other
	}
	return ""
}

// routeTo returns the interface by which the kernel would send to an address. For one of
// this machine's addresses that is the interface that has it.
func routeTo(ip netip.Addr) (string, error) {
	routes, err := netlink.RouteGet(ip.AsSlice())
	if err == nil && len(routes) == 0 {
		err = unix.ENETUNREACH
	}
	if err != nil {
		if name := down(ip); name != "" {
			return "", fmt.Errorf("%s, which leads to %v: %w: `ip link set dev %s up`", name, ip, ErrDown, name)
		}
		return "", fmt.Errorf("%w to %v: %w: add one with `ip route add`, or name an interface with -i", ErrNoRoute, ip,
			err)
	}
	if routes[0].Type == unix.RTN_LOCAL {
		return holder(ip)
	}
	i, err := net.InterfaceByIndex(routes[0].LinkIndex)
	if err != nil {
		return "", fmt.Errorf("the route to %v: %w", ip, err)
	}
	return i.Name, nil
}

// down returns the interface on an address's network that is down, if there is one. Such
// an interface keeps its addresses, and the routes of their networks come back with it.
func down(ip netip.Addr) string {
	all, _ := net.Interfaces()
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			if n, is := a.(*net.IPNet); is && i.Flags&net.FlagUp == 0 && n.Contains(ip.AsSlice()) {
				return i.Name
			}
		}
	}
	return ""
}

// holder returns the interface that has an own address, or its network, as a loopback
// interface does.
func holder(ip netip.Addr) (string, error) {
	all, err := net.Interfaces()
	if err != nil {
		return "", err
	}
	for _, i := range all {
		addrs, _ := i.Addrs()
		for _, a := range addrs {
			n, is := a.(*net.IPNet)
			if is && (n.IP.Equal(ip.AsSlice()) || i.Flags&net.FlagLoopback != 0 && n.Contains(ip.AsSlice())) {
				return i.Name, nil
			}
		}
	}
	return "", fmt.Errorf("%w: no interface has the own address %v", ErrUnclear, ip)
}

// towards returns the interface to a MAC address, and the reason.
func towards(daemons []daemon, mac wire.MAC) (name, why string, err error) {
	if len(daemons) == 1 {
		return daemons[0].Interface.Name, "default, as the only one that a daemon serves", nil
	}
	all, err := net.Interfaces()
	if err != nil {
		return "", "", err
	}
	known := neighbour(mac)
	var near, fit []string
	for _, i := range all {
		if i.Flags&net.FlagLoopback != 0 || i.Flags&net.FlagUp == 0 || len(i.HardwareAddr) != len(mac) {
			continue
		}
		if bytes.Equal(i.HardwareAddr, mac[:]) || slices.Contains(known, i.Index) {
			near = append(near, i.Name)
		}
		fit = append(fit, i.Name)
	}
	switch {
	case len(near) == 1:
		return near[0], fmt.Sprintf("the kernel's neighbour entry for %v", mac), nil
	case len(fit) == 1:
		return fit[0], "default, as the only interface that is up", nil
	case len(fit) == 0:
		return "", "", fmt.Errorf("%w: no Ethernet interface is up", ErrUnclear)
	}
	list := strings.Join(fit, ", ")
	if mac == (wire.MAC{}) {
		return "", "", fmt.Errorf("%w: it may be any of %s; name it", ErrUnclear, list)
	}
	return "", "", fmt.Errorf("%w for a MAC address: it may be any of %s; name it, or give the peer's IP address",
		ErrUnclear, list)
}

// neighbour returns the indexes of the interfaces on which the kernel knows a MAC
// address.
func neighbour(mac wire.MAC) (indexes []int) {
	if mac == (wire.MAC{}) {
		return nil
	}
	for _, family := range []int{netlink.FAMILY_V4, netlink.FAMILY_V6} {
		list, _ := netlink.NeighList(0, family) // it is a hint
		for _, n := range list {
			if bytes.Equal(n.HardwareAddr, mac[:]) && !slices.Contains(indexes, n.LinkIndex) {
				indexes = append(indexes, n.LinkIndex)
			}
		}
	}
	return indexes
}
