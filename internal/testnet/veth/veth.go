// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync/atomic"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// IfName is the name of the interface on both sides; each has its own namespace.
const IfName = "veth0"

// Options shape a pair. The zero value is one queue and the kernel's MTU (1500).
type Options struct {
	Queues int // RX and TX queues per side; 0 means 1
	MTU    int // bytes; 0 means the kernel's default. Above 3498 packets take several buffers
	// Straight means that what one side sends from a queue has to arrive on the same
	// queue of the other, as it does on a veth. NICs choose the queue by themselves.
	Straight bool
}

// Side is one end: a namespace and the interface within. Only New writes its
// fields.
type Side struct {
	Name    string         // of the namespace, as `ip netns` shows it
	NS      netns.NsHandle // owned by the pair, closed by Pair.Close
	IfName  string
	IfIndex int // valid inside the namespace only
	MAC     net.HardwareAddr
	IP4     netip.Addr // 10.77.0.1 or .2, /24
	IP6     netip.Addr // fd00:77::1 or ::2, /64

	loan *loan // nil unless the interface is borrowed
}

// Pair is two joined namespaces. A and B differ in nothing but their addresses.
type Pair struct {
	A, B *Side

	give func() error // gives what is borrowed back; nil if nothing is
}

// serial keeps several pairs of one process apart.
var serial atomic.Uint32

// New builds a pair with both sides up and ready to carry traffic. It needs
// CAP_NET_ADMIN and CAP_SYS_ADMIN. On error nothing is left behind; otherwise
// call Close.
func New(o Options) (*Pair, error) {
	p, err := prepare(o)
	if err != nil {
		return nil, err
	}
	if err := p.start(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// prepare makes the namespaces and the veth, which is down.
func prepare(o Options) (p *Pair, err error) {
	if o.Queues < 0 || o.MTU < 0 {
		return nil, fmt.Errorf("veth: negative option: %+v", o)
	}
	if p, err = empty(); err != nil {
		return nil, err
	}
	if err = p.join(o); err != nil {
		err = fmt.Errorf("veth: joining %s and %s: %w (needs CAP_NET_ADMIN)", p.A.Name, p.B.Name, err)
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// empty makes the namespaces.
func empty() (p *Pair, err error) {
	sweep()
	stem := fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), serial.Add(1))
	p = &Pair{A: newSide(stem+"-a", 1), B: newSide(stem+"-b", 2)}
	if err := settle(p.A, p.B); err != nil {
		return nil, errors.Join(fmt.Errorf("veth: %w", err), p.Close())
	}
	return p, nil
}

// start brings both sides up and waits until they carry traffic.
func (p *Pair) start() error {
	for _, s := range p.sides() {
		if err := s.configure(); err != nil {
			return fmt.Errorf("veth: configuring %s: %w", s.Name, err)
		}
	}
	return awaitRunning(p.A, p.B)
}

func newSide(name string, host byte) *Side {
	s := &Side{Name: name, NS: netns.None(), IfName: IfName}
	s.IP4, s.IP6 = addresses(subnetA, host)
	return s
}

func (p *Pair) sides() [2]*Side { return [2]*Side{p.A, p.B} }

// join creates the veth with one end in each namespace from the start, so that
// the caller's own namespace never sees it.
func (p *Pair) join(o Options) error {
	h, err := netlink.NewHandleAt(p.A.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.Index = IfName, o.MTU, oddIndex
	attrs.NumTxQueues, attrs.NumRxQueues = max(o.Queues, 1), max(o.Queues, 1)
	v := netlink.NewVeth(attrs)
	v.PeerName, v.PeerNamespace = IfName, netlink.NsFd(p.B.NS)
	return h.LinkAdd(v)
}

// configure brings lo and the interface up and gives it its addresses.
func (s *Side) configure() error {
	h, err := netlink.NewHandleAt(s.NS, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer h.Close()
	lo, err := h.LinkByName("lo")
	if err != nil {
		return err
	}
	link, err := h.LinkByName(IfName)
	if err != nil {
		return err
	}
	s.IfIndex, s.MAC = link.Attrs().Index, link.Attrs().HardwareAddr
	if err := addAddresses(h, link, s.IP4, s.IP6); err != nil {
		return err
	}
	return errors.Join(h.LinkSetUp(lo), h.LinkSetUp(link))
}

// leastIPv6MTU is the least MTU of a link with IPv6 (RFC 8200), bytes.
const leastIPv6MTU = 1280

// addAddresses gives a link its addresses, with the prefixes of all our subnets. A
// link with a smaller MTU than IPv6 needs gets no IPv6 address.
func addAddresses(h *netlink.Handle, link netlink.Link, ip4, ip6 netip.Addr) error {
	for _, a := range []netip.Prefix{netip.PrefixFrom(ip4, 24), netip.PrefixFrom(ip6, 64)} {
		n := &net.IPNet{IP: a.Addr().AsSlice(), Mask: net.CIDRMask(a.Bits(), a.Addr().BitLen())}
		addr := &netlink.Addr{IPNet: n}
		if a.Addr().Is6() {
			if link.Attrs().MTU < leastIPv6MTU {
				continue
			}
			// Duplicate detection would hold the address back for a second.
			addr.Flags = unix.IFA_F_NODAD
		}
		if err := h.AddrAdd(link, addr); err != nil {
			return fmt.Errorf("address %s: %w", a, err)
		}
	}
	return nil
}

// Close removes the veth and both namespaces. It is idempotent. A namespace
// that still has a process lives on, without a name, until that process leaves.
func (p *Pair) Close() error {
	var errs []error
	if p.give != nil {
		errs = append(errs, p.give())
		p.give, p.A.IfIndex = nil, 0
	}
	// The device goes first: the kernel frees a namespace only later, and by
	// then nothing should arrive at sockets still bound to it.
	if p.A.IfIndex != 0 {
		if h, err := netlink.NewHandleAt(p.A.NS, unix.NETLINK_ROUTE); err == nil {
			// An error is ignored: a test may have deleted the link, and it
			// dies with the namespace.
			_ = h.LinkDel(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: p.A.IfIndex}})
			h.Close()
		}
		p.A.IfIndex = 0
	}
	for _, s := range p.sides() {
		if s.NS.IsOpen() {
			errs = append(errs, s.NS.Close(), unname(s.Name))
		}
	}
	return errors.Join(errs...)
}
