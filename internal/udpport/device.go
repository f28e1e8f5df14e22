// SPDX-License-Identifier: Apache-2.0

package udpport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// MaxMTU bounds the packets on interfaces of a larger MTU, such as the loopback
// interface, bytes.
const MaxMTU = 9000

// Device is an interface, or one address of it, in use by UDP sockets. Its methods may be
// called from any goroutine; its queue has one thread.
type Device struct {
	name  string
	home  string // the network namespace of Open
	iface net.Interface
	mtu   int
	addrs []netip.Addr // served
	// networks are those of the interface.
	networks []netip.Prefix

	queue port
	ways  []way // by address; then one of each family, which is free to choose the address

	mu     sync.Mutex // guards ways, which are used one at a time, and what follows
	faults *disturber
	closed bool // guarded by mu
}

// way asks for ways from an address.
type way struct {
	from  netip.Addr // unspecified: the kernel chooses
	scout scout
}

// Open puts an interface of the calling thread's network namespace to use, at all
// addresses that it has now, or only the one address that name is. The error names what
// to do about it. Nothing is left behind.
func Open(name string, o Options) (*Device, error) {
	iface, addrs, err := find(name)
	if err != nil {
		return nil, fmt.Errorf("udp: %w", err)
	}
	if iface.MTU < wire.MinMTU {
		return nil, fmt.Errorf("udp: %s: MTU %d is too small, want at least %d: %w", name, iface.MTU,
			wire.MinMTU, ErrMTU)
	}
	d := &Device{name: name, home: namespace(), iface: *iface, mtu: min(iface.MTU, MaxMTU), addrs: addrs}
	if list, err := iface.Addrs(); err == nil {
		for _, x := range list {
			if n, err := netip.ParsePrefix(x.String()); err == nil {
				d.networks = append(d.networks, n.Masked())
			}
		}
	}
	if d.queue, err = openPort(addrs, d.mtu, o); err != nil {
		return nil, err
	}
	if err := d.openWays(); err != nil {
		return nil, errors.Join(fmt.Errorf("udp: %s: %w", name, err), d.Close())
	}
	return d, nil
}

// openWays makes what Link asks.
func (d *Device) openWays() error {
	any := []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()}
	for _, from := range append(slices.Clone(d.addrs), any...) {
		s, err := newScout(from)
		if err != nil {
			if from.IsUnspecified() { // this node lacks a family of addresses
				continue
			}
			return err
		}
		d.ways = append(d.ways, way{from, s})
	}
	return nil
}

// Port is the one queue of the device.
func (d *Device) Port() port { return d.queue }

// Name is the interface's, or the address, as in Open.
func (d *Device) Name() string { return d.name }

// Interface has the addresses, as it was when the device was opened.
func (d *Device) Interface() net.Interface { return d.iface }

// Addrs are the addresses at which peers reach the device.
func (d *Device) Addrs() []netip.Addr { return slices.Clone(d.addrs) }

// Network returns the network of an address of the device.
func (d *Device) Network(a netip.Addr) netip.Prefix {
	for _, n := range d.networks {
		if n.Contains(a) {
			return n
		}
	}
	return netip.PrefixFrom(a, a.BitLen())
}

// MTU is the length of the longest packet with its IP header, bytes.
func (d *Device) MTU() int { return d.mtu }

// MAC is the interface's address, zero if it has none.
func (d *Device) MAC() (m wire.MAC) {
	copy(m[:], d.iface.HardwareAddr)
	return m
}

// Link finds the way to an IP address: the address of this node that packets leave from.
func (d *Device) Link(_ context.Context, a wire.Addr) (wire.Link, error) {
	if !a.IsIP() {
		return wire.Link{},
			fmt.Errorf(
				"udp: %s: %v is an Ethernet address, which UDP sockets cannot reach: use the peer's IP address, "+
					"or AF_XDP (transport xdp)", d.name, a.MAC)
	}
	l := wire.Link{Medium: wire.OnSocket, Kind: a.Kind(), RemoteIP: a.IP}
	var err error
	l.LocalIP, err = d.source(a.IP)
	return l, err
}

// OwnFault says why no packet of this node reaches an address at present, whatever the
// peer does, and the remedy; "" if nothing is wrong here, or if the calling thread is in
// another network namespace.
func (d *Device) OwnFault(to netip.Addr) string {
	now, err := net.InterfaceByIndex(d.iface.Index)
	switch {
	case err != nil || now.Name != d.iface.Name || !bytes.Equal(now.HardwareAddr, d.iface.HardwareAddr):
		return ""
	case now.Flags&net.FlagUp == 0:
		return fmt.Sprintf("interface %[1]s is down: `ip link set dev %[1]s up`", now.Name)
	case now.Flags&net.FlagRunning == 0:
		return fmt.Sprintf("interface %s has no carrier: connect its cable, or set up the other end", now.Name)
	}
	from, err := d.source(to)
	for _, own := range d.addrs {
		if (own == from || err != nil && own.Is4() == to.Is4()) && !has(now, own) {
			return fmt.Sprintf("interface %s no longer has the address %v, from which this program sends: add it, or "+
				"open the interface again", now.Name, own)
		}
	}
	if err != nil && !errors.Is(err, ErrClosed) {
		return err.Error()
	}
	return ""
}

// source returns the served address to send from.
func (d *Device) source(to netip.Addr) (netip.Addr, error) {
	if slices.Contains(d.addrs, to) {
		return to, nil // this node itself
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return to, ErrClosed
	}
	why := errors.New("the interface has no address of that family")
	own := 0
	for _, from := range d.addrs {
		if from.Is4() == to.Is4() {
			own++
		}
	}
	if own > 1 { // the kernel knows which one is best
		if a, err := d.ask(to, true); err == nil && slices.Contains(d.addrs, a) {
			return a, nil
		}
	}
	if own > 0 {
		a, err := d.ask(to, false)
		if err == nil {
			return a, nil
		}
		why = err
	}
	return to, fmt.Errorf("%s has %s: %w to %v from there: %w", d.name, d.places(), ErrNoRoute, to, why)
}

// places lists the addresses that are served, for people.
func (d *Device) places() string {
	all := make([]string, len(d.addrs))
	for i, a := range d.addrs {
		all[i] = a.String()
	}
	return strings.Join(all, " and ")
}

// ask asks for a way from an address of the kernel's choice, or from one that is served.
func (d *Device) ask(to netip.Addr, any bool) (a netip.Addr, err error) {
	for _, w := range d.ways {
		if w.from.IsUnspecified() == any && w.from.Is4() == to.Is4() {
			if a, err = w.scout.reach(to); err == nil {
				return a, nil
			}
		}
	}
	return a, err
}

// SetFaults changes what happens to packets sent from now on.
func (d *Device) SetFaults(f Faults) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.faults == nil {
		d.faults = newDisturber()
		d.queue.disturb(d.faults)
	}
	d.faults.set(f)
}

// Counters returns what the queue has counted, by name.
func (d *Device) Counters() (map[string]uint64, error) { return d.queue.counters(), nil }

// Close closes the sockets. No thread may use the queue from then on, except for Wake.
// Closing twice is no error.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	errs := []error{d.queue.close()}
	for _, w := range d.ways {
		errs = append(errs, w.scout.close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("udp: closing %s: %w", d.name, err)
	}
	return nil
}

// find returns an interface and the addresses to serve, by its name or by one of its
// addresses.
func find(name string) (*net.Interface, []netip.Addr, error) {
	if iface, err := net.InterfaceByName(name); err == nil {
		addrs, err := unicast(iface)
		if err == nil && len(addrs) == 0 {
			err = fmt.Errorf("%s: %w that UDP sockets could serve: `ip address add ADDRESS/LENGTH dev %s`, or use "+
				"AF_XDP", name, ErrNoAddress, name)
		}
		return iface, addrs, err
	}
	a, err := netip.ParseAddr(name)
	if err != nil {
		return nil, nil, errno.Refuse(errno.NoInterface,
			"%q is neither an interface of this node nor an IP address of one; `ip address` lists them", name)
	}
	a = a.Unmap()
	all, err := net.Interfaces()
	if err != nil {
		return nil, nil, err
	}
	for i := range all {
		if has(&all[i], a) {
			return &all[i], []netip.Addr{a}, nil
		}
	}
	return nil, nil, fmt.Errorf("%v: %w of an interface of this node: want one that `ip address` lists", a,
		ErrNoAddress)
}

// Addrs are the addresses that Open would serve.
func Addrs(name string) ([]netip.Addr, error) {
	_, addrs, err := find(name)
	return addrs, err
}

// unicast returns the addresses of an interface that peers can be told. Those of the link
// alone would take a zone.
func unicast(i *net.Interface) (addrs []netip.Addr, err error) {
	list, err := i.Addrs()
	if err != nil {
		return nil, err
	}
	for _, x := range list {
		if n, ok := x.(*net.IPNet); ok {
			a, _ := netip.AddrFromSlice(n.IP)
			if a = a.Unmap(); a.IsValid() && !a.IsLinkLocalUnicast() && !a.IsMulticast() {
				addrs = append(addrs, a)
			}
		}
	}
	return addrs, nil
}

// has reports whether an interface has an address; a loopback interface has its whole
// network.
func has(i *net.Interface, a netip.Addr) bool {
	list, err := i.Addrs()
	if err != nil {
		return false
	}
	for _, x := range list {
		n, ok := x.(*net.IPNet)
		if ok && (n.IP.Equal(a.AsSlice()) || i.Flags&net.FlagLoopback != 0 && n.Contains(a.AsSlice())) {
			return true
		}
	}
	return false
}
