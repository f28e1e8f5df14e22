// SPDX-License-Identifier: Apache-2.0

//go:build linux

package route

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/dump"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// netlinkTimeout bounds one request to the kernel, which answers at once.
const netlinkTimeout = 5 * time.Second

// Hop is the first step towards an address.
type Hop struct {
	via     int        // index of the interface whose routes and neighbours lead there
	MAC     wire.MAC   // of the next hop; the interface's own for its own addresses
	Local   wire.MAC   // to send from: of the interface, or of the one above it that has Source
	Source  netip.Addr // address of the interface to send from
	Gateway netip.Addr // the next hop's address; not valid if the destination is on the link
}

// Resolver answers for one interface. Its methods may be called from any
// goroutine, even from one in another network namespace.
type Resolver struct {
	index int
	vlan  uint16 // whose interface on top stands for this one; 0 for this one itself
	name  string
	mac   wire.MAC
	// chain is the interface, or that of the VLAN, and those above it whose addresses are
	// served: see chained.
	chain atomic.Pointer[[]int]
	// macs are the MAC addresses at which packets to the interfaces of the chain arrive,
	// by index, where these are not the interface's own.
	macs atomic.Pointer[map[int]wire.MAC]

	mu     sync.RWMutex // held for reading during a request, so that Close does not close its socket meanwhile
	handle *netlink.Handle
	single map[int]*nl.SocketHandle // for requests that handle does not have: see entry
}

// New returns a Resolver for an interface of the calling thread's network namespace, and
// stays with that namespace. With a VLAN, addresses, routes and neighbours are those of
// the 802.1Q interface on top, as long as there is one.
func New(ifindex int, vlan uint16) (*Resolver, error) {
	h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("opening rtnetlink: %w", err)
	}
	s, err := nl.Subscribe(unix.NETLINK_ROUTE)
	if err != nil {
		h.Close()
		return nil, fmt.Errorf("opening rtnetlink: %w", err)
	}
	r := &Resolver{index: ifindex, vlan: vlan, handle: h,
		single: map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: {Socket: s}}}
	limit := unix.NsecToTimeval(int64(netlinkTimeout))
	err = errors.Join(h.SetSocketTimeout(netlinkTimeout), s.SetSendTimeout(&limit), s.SetReceiveTimeout(&limit))
	if err == nil {
		err = r.identify()
	}
	if err != nil {
		r.Close()
		return nil, fmt.Errorf("interface %d: %w", ifindex, err)
	}
	return r, nil
}

// identify reads the properties that do not change while the interface is in
// use.
func (r *Resolver) identify() error {
	link, err := r.handle.LinkByIndex(r.index)
	if err != nil {
		return err
	}
	r.name = link.Attrs().Name
	r.macs.Store(&map[int]wire.MAC{})
	if r.chain.Store(new([]int)); r.vlan == 0 {
		r.chain.Store(&[]int{r.index})
	}
	if len(link.Attrs().HardwareAddr) != len(r.mac) {
		return fmt.Errorf("%s has the hardware address %q, want an Ethernet MAC", r.name, link.Attrs().HardwareAddr)
	}
	r.mac = wire.MAC(link.Attrs().HardwareAddr)
	return nil
}

// Close ends the Resolver; a Resolve under way fails with ErrClosed. It is
// idempotent.
func (r *Resolver) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.handle != nil {
		r.handle.Close()
		r.single[unix.NETLINK_ROUTE].Close()
		r.handle = nil
	}
}

// ask makes one request.
func ask[T any](r *Resolver, f func(h *netlink.Handle) (T, error)) (T, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if r.handle == nil {
		var none T
		return none, ErrClosed
	}
	return dump.Whole(func() (T, error) { return f(r.handle) })
}

// Networks lists the unicast addresses of the interface and of those above it (Upper),
// each with the length of its network's prefix. It leaves out addresses whose packets may
// arrive elsewhere.
func (r *Resolver) Networks() ([]netip.Prefix, error) {
	if err := r.chained(); err != nil {
		return nil, fmt.Errorf("interfaces above %s: %w", r.name, err)
	}
	var networks []netip.Prefix
	for _, index := range *r.chain.Load() {
		list, err := ask(r, func(h *netlink.Handle) ([]netlink.Addr, error) {
			return h.AddrList(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index}}, netlink.FAMILY_ALL)
		})
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", r.name, err)
		}
		for _, a := range list {
			// A duplicate of the address was found on the link: the kernel does not
			// use this one.
			if ip, ok := addrOf(a.IP); ok && a.Flags&unix.IFA_F_DADFAILED == 0 {
				bits, _ := a.Mask.Size()
				networks = append(networks, netip.PrefixFrom(ip, bits))
			}
		}
	}
	return networks, nil
}

// chained looks which interfaces are above this one now. One that is gone has none.
func (r *Resolver) chained() error {
	var chain []int
	if r.vlan == 0 {
		chain = append(chain, r.index)
	}
	uppers, err := r.Uppers()
	if gone := errors.Is(err, ErrGone); err != nil && !gone {
		return err
	}
	macs := map[int]wire.MAC{}
	for _, u := range uppers {
		if u.Foreign {
			continue
		}
		if chain = append(chain, u.Index); u.at != r.mac {
			macs[u.Index] = u.at
		}
	}
	r.macs.Store(&macs)
	r.chain.Store(&chain)
	return nil
}

// Addrs lists the addresses of Networks.
func (r *Resolver) Addrs() (addrs []netip.Addr, err error) {
	networks, err := r.Networks()
	for _, n := range networks {
		addrs = append(addrs, n.Addr())
	}
	return addrs, err
}

// Resolve finds the first hop towards a unicast address. It may have to wait for
// the neighbour's answer: at most 3 s, or until the context ends.
//
// Errors wrap ErrNoRoute, ErrNoSource, ErrUnreachable, ErrClosed or the context's.
func (r *Resolver) Resolve(ctx context.Context, dst netip.Addr) (Hop, error) {
	dst = dst.Unmap().WithZone("")
	if !dst.IsValid() || dst.IsUnspecified() || dst.IsMulticast() {
		return Hop{}, fmt.Errorf("%v is not the address of one node: %w", dst, ErrNoRoute)
	}
	own, err := r.Addrs()
	if err != nil {
		return Hop{}, err
	}
	hop, err := r.Look(dst, own)
	if err != nil || hop.Source == dst {
		return hop, err
	}
	hop.MAC, err = r.neighbour(ctx, hop.via, hop.Next(dst))
	return hop, err
}

// addrOf converts a net.IP, and reports whether it is an address.
func addrOf(ip net.IP) (netip.Addr, bool) {
	a, ok := netip.AddrFromSlice(ip)
	return a.Unmap(), ok
}
