// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Domain is an interface in use: its queues, each with an engine, and the memory
// that peers may address. It corresponds to fi_domain(3).
type Domain struct {
	node     *node.Node
	attr     DomainAttr
	fabric   *Fabric
	calls    sync.WaitGroup // asynchronous calls under way; begun under mu
	triggers triggers

	mu        sync.Mutex // taken before Node.mu
	closed    bool
	endpoints map[uint16]*Endpoint
	served    atomic.Pointer[[]*Endpoint] // those that accept sessions; written under mu
	dialer    *Endpoint                   // the endpoint that dialled peers share; made at first use
	events    eventLink                   // BindEQ
	children  map[any]string              // the open objects of the domain, with their names
}

// newDomain makes a domain of a device. The domain owns the device from here on, also
// when newDomain fails.
func newDomain(f *Fabric, dev node.Device, attr DomainAttr) (*Domain, error) {
	n := &node.Node{Dev: dev, Table: mr.NewTable(), End: node.End{Done: make(chan struct{})}}
	d := &Domain{node: n, attr: attr, fabric: f, endpoints: map[uint16]*Endpoint{}, children: map[any]string{}}
	n.Owner = asOwner{d}
	at := attr.home
	d.attr.life, d.attr.opener, d.attr.home = 0, nil, nil
	n.Paused.Store(attr.life != 0 || at != nil)
	d.served.Store(&[]*Endpoint{})
	home := residence.New(n, at)
	if err := d.attr.tune(dev); err != nil {
		n.Release()
		return nil, err
	}
	n.Config = d.attr.config()
	dev.Deliver(guestReceiver{d})
	if err := n.Run(cmp.Or(attr.life, node.NewLife()), at.Lasting()); err != nil {
		n.Release()
		return nil, err
	}
	if d.outlives() {
		dev.Survive(n.Steppers[0], d.moveIn)
	}
	dev.Watch(n.Happened)
	if at == nil && attr.ResidentPin != "" || at != nil && !at.Vacant { // a Pipe refuses
		if err := home.SettleIn(); err != nil {
			return nil, errors.Join(err, d.shut(true))
		}
	}
	return d, nil
}

// serving returns the endpoint of that number which accepts sessions, or nil.
func (d *Domain) serving(number uint16) *Endpoint {
	ep, _ := d.node.Numbers.Serving(number).(*asTenant)
	return (*Endpoint)(ep)
}

// Attr returns the attributes in force.
func (d *Domain) Attr() DomainAttr { return d.attr }

// Interface describes the interface and the mode that it is used in.
func (d *Domain) Interface() InterfaceInfo { return InterfaceInfo(d.node.Dev.Info()) }

// Name returns the address of the domain's endpoint of the given number on the Ethernet
// segment, as peers pass it to Dial or AddressVector.Insert. See Endpoint.Name.
func (d *Domain) Name(endpoint uint16) string {
	return wire.Addr{MAC: d.node.Dev.MAC(), Endpoint: endpoint}.String()
}

// Progress moves a domain with manual progress on by one step of each engine, and returns
// how much there was to do. With automatic progress it only starts the operations that
// were posted with FlagMore.
func (d *Domain) Progress() int {
	n := 0
	for _, t := range d.node.Turns {
		n += t.Progress()
	}
	d.node.CountPeers()
	return n
}

// Stats returns every statistic of the domain by name: the engines' counters and the
// interface's (sockets, XDP program). Operations that have completed before the call are
// counted. With manual progress the call makes progress.
func (d *Domain) Stats() (map[string]uint64, error) {
	all, err := d.node.Dev.Counters()
	if err != nil {
		return nil, fmt.Errorf("xdpfab: domain on %s: %w", d.node.Dev.Info().Name, err)
	}
	for _, st := range d.node.Steppers {
		st.Call(st.Eng.Publish)
		c := st.Eng.Counters()
		c.Each(func(name string, v uint64) { all[name] += v })
	}
	if err := residence.Of(d.node).Count(all); err != nil {
		return nil, fmt.Errorf("xdpfab: domain on %s: %w", d.node.Dev.Info().Name, err)
	}
	return all, nil
}

// shut closes the domain, unless it has children that must not be closed with it.
func (d *Domain) shut(children bool) error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	if err := d.busy(); err != nil && !children {
		d.mu.Unlock()
		return err
	}
	d.closed = true
	d.mu.Unlock()
	residence.Of(d.node).Depart()
	d.mu.Lock()
	d.endObjects()
	d.node.End.Set(fmt.Errorf("domain on %s: %w", d.node.Dev.Info().Name, ErrClosed))
	d.mu.Unlock()
	d.node.Dev.Part()
	d.node.Quiesce()
	d.calls.Wait()
	d.mu.Lock()
	d.events.cut()
	d.mu.Unlock()
	if d.fabric != nil {
		d.fabric.forget(d)
	}
	d.leave()
	err := d.node.Release() // from here on the device reports nothing
	d.node.Ending.Wait()
	if err != nil {
		return fmt.Errorf("xdpfab: domain on %s: %w", d.node.Dev.Info().Name, err)
	}
	return nil
}

// Hosting returns the domain as the host of guests.
func (d *Domain) Hosting() *host.Host { return host.On(d.node) }
