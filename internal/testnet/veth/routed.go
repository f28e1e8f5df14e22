// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/dump"
)

// Routed is two sides on two subnets, with a router between them: a namespace whose
// kernel forwards. Side A is 10.77.0.1 and fd00:77::1, side B 10.78.0.1 and
// fd00:78::1; the router has host number 254 on both.
type Routed struct {
	A, B   *Side
	router *Side
}

// The two subnets, and the router's interfaces in them.
var (
	subnets     = [2]byte{subnetA, subnetB}
	routerPorts = [2]string{"left", "right"}
)

const (
	subnetA    = 77
	subnetB    = 78
	routerHost = 254
)

// NewRouted builds a routed network. It needs what New needs. On error nothing is
// left behind; otherwise call Close.
func NewRouted(o Options) (r *Routed, err error) {
	if o.Queues < 0 || o.MTU < 0 {
		return nil, fmt.Errorf("veth: negative option: %+v", o)
	}
	sweep()
	stem := fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), serial.Add(1))
	r = &Routed{A: newSide(stem+"-a", 1), B: newSide(stem+"-b", 1), router: newSide(stem+"-router", routerHost)}
	r.B.IP4, r.B.IP6 = addresses(subnetB, 1)
	if err := r.build(o); err != nil {
		return nil, errors.Join(fmt.Errorf("veth: routed: %w (needs CAP_SYS_ADMIN and CAP_NET_ADMIN)", err), r.Close())
	}
	return r, nil
}

func (r *Routed) build(o Options) (err error) {
	if err := settle(r.router, r.A, r.B); err != nil {
		return err
	}
	if err := r.router.Do(forward); err != nil {
		return fmt.Errorf("forwarding: %w", err)
	}
	h, err := netlink.NewHandleAt(r.router.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	for i, s := range []*Side{r.A, r.B} {
		if err := connect(h, routerPorts[i], oddIndex+i, s, o); err != nil {
			return fmt.Errorf("router to %s: %w", s.Name, err)
		}
		if err := s.configure(); err != nil {
			return fmt.Errorf("%s: %w", s.Name, err)
		}
		port, err := h.LinkByName(routerPorts[i])
		if err != nil {
			return err
		}
		ip4, ip6 := addresses(subnets[i], routerHost)
		if err := addAddresses(h, port, ip4, ip6); err != nil {
			return err
		}
		if err := s.via(ip4, ip6); err != nil {
			return fmt.Errorf("routes of %s: %w", s.Name, err)
		}
	}
	return awaitRunning(r.router, r.A, r.B)
}

// addresses returns those of a host in one of the subnets.
func addresses(subnet, host byte) (ip4, ip6 netip.Addr) {
	return netip.AddrFrom4([4]byte{10, subnet, 0, host}),
		netip.AddrFrom16([16]byte{0: 0xfd, 3: subnet/10<<4 | subnet%10, 15: host})
}

// forward makes the namespace's kernel a router.
func forward() error {
	for _, key := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"} {
		if err := os.WriteFile("/proc/sys/"+key, []byte("1"), 0); err != nil {
			return err
		}
	}
	return nil
}

// via adds default routes.
func (s *Side) via(gateways ...netip.Addr) error {
	h, err := netlink.NewHandleAt(s.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, g := range gateways {
		everywhere := &net.IPNet{IP: make(net.IP, g.BitLen()/8), Mask: net.CIDRMask(0, g.BitLen())}
		if err := h.RouteAdd(&netlink.Route{LinkIndex: s.IfIndex, Dst: everywhere, Gw: g.AsSlice()}); err != nil {
			return fmt.Errorf("by %v: %w", g, err)
		}
	}
	return nil
}

// SwapGateway gives the router another MAC address towards a side, silently, as when
// another router takes over its IP addresses, and returns it.
func (r *Routed) SwapGateway(side *Side) (net.HardwareAddr, error) {
	h, err := netlink.NewHandleAt(r.router.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	name := routerPorts[0]
	if side == r.B {
		name = routerPorts[1]
	}
	port, err := h.LinkByName(name)
	if err != nil {
		return nil, fmt.Errorf("veth: router's %s: %w", name, err)
	}
	mac := slices.Clone(port.Attrs().HardwareAddr)
	mac[5] ^= 0x55
	if err := h.LinkSetHardwareAddr(port, mac); err != nil {
		return nil, fmt.Errorf("veth: router's %s: %w", name, err)
	}
	return mac, nil
}

// Disturb applies the queueing discipline netem to everything that the router
// sends, in both directions. That includes frames of AF_XDP sockets: they bypass
// only their sender's own queueing discipline. The error wraps ErrNoNetem if the
// kernel has no netem.
func (r *Routed) Disturb(n netlink.NetemQdiscAttrs) error {
	h, err := netlink.NewHandleAt(r.router.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	for _, name := range routerPorts {
		port, err := h.LinkByName(name)
		if err == nil {
			err = netem(h, port, n)
		}
		if err != nil {
			return fmt.Errorf("veth: router's %s: %w", name, err)
		}
	}
	return nil
}

// ErrNoNetem means that the kernel was built without NET_SCH_NETEM, or lacks its
// module.
var ErrNoNetem = errors.New("this kernel has no netem")

// netem replaces a link's queueing discipline.
func netem(h *netlink.Handle, l netlink.Link, n netlink.NetemQdiscAttrs) error {
	attrs := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0),
		Parent: netlink.HANDLE_ROOT}
	err := h.QdiscReplace(netlink.NewNetem(attrs, n))
	if errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%w: %w", ErrNoNetem, err)
	}
	return err
}

// Disturb applies netem to everything that the kernel sends from this side, but
// not to frames of AF_XDP sockets: those bypass it. See Routed.Disturb.
func (s *Side) Disturb(n netlink.NetemQdiscAttrs) error {
	h, err := netlink.NewHandleAt(s.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	l, err := h.LinkByIndex(s.IfIndex)
	if err == nil {
		err = netem(h, l, n)
	}
	if err != nil {
		return fmt.Errorf("veth: %s: %w", s.Name, err)
	}
	return nil
}

// Close removes everything. It is idempotent.
func (r *Routed) Close() error { return remove(r.router, r.A, r.B) }

// remove removes the devices of a hub, and then the namespaces. Deleting one end of
// a veth deletes both; the kernel frees a namespace only later, and by then nothing
// should arrive at sockets still bound to its interface.
func remove(hub *Side, sides ...*Side) error {
	if hub.NS.IsOpen() {
		if h, err := netlink.NewHandleAt(hub.NS, unix.NETLINK_ROUTE); err == nil {
			links, _ := dump.Whole(h.LinkList)
			for _, l := range links {
				if l.Type() == "veth" {
					_ = h.LinkDel(l)
				}
			}
			h.Close()
		}
	}
	var errs []error
	for _, s := range append(sides, hub) {
		if s.NS.IsOpen() {
			errs = append(errs, s.NS.Close(), unname(s.Name))
		}
	}
	return errors.Join(errs...)
}
