// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/residence"
)

// Domain is an interface in use: its queues, each with an engine, and the memory that
// peers may address. It corresponds to fi_domain(3).
type Domain struct {
	node     *node.Node
	attr     DomainAttr
	fabric   *Fabric
	calls    sync.WaitGroup // asynchronous calls under way; begun under mu
	triggers triggers

	mu        sync.Mutex // taken before Node.mu
	closed    bool
	endpoints map[uint16]*endpoint
	served    atomic.Pointer[[]*endpoint] // those that accept sessions; written under mu
	dialer    *endpoint                   // the endpoint that dialled peers share; made at first use
	events    eventLink                   // BindEQ
	children  map[any]string              // the open objects of the domain, with their names
}

// newDomain makes a domain of a device, whose resident part comes from a store, or nil.
// life is that of the domain whose place it takes, paused until Resume; 0 for none. The
// domain owns device and store from here on, also when newDomain fails.
func newDomain(f *Fabric, dev node.Device, attr DomainAttr, at *residence.Store, life uint64) (*Domain, error) {
	d := &Domain{attr: attr, fabric: f, endpoints: map[uint16]*endpoint{}, children: map[any]string{}}
	n := node.New(dev, asOwner{d})
	d.node = n
	d.served.Store(&[]*endpoint{})
	resident := residence.New(n, at)
	if err := d.attr.tune(dev); err != nil {
		n.Release()
		return nil, err
	}
	n.Config = d.attr.config()
	dev.Deliver(guestReceiver{d})
	if err := resident.Start(life); err != nil {
		return nil, err
	}
	if d.outlives() {
		dev.Survive(n.Steppers[0], d.moveIn)
	}
	dev.Watch(n.Happened)
	if attr.ResidentPin != "" || at != nil { // a Pipe refuses
		if err := resident.SettleIn(); err != nil {
			return nil, errno.Join(err, d.closeWith(true))
		}
	}
	return d, nil
}

// serving returns the endpoint of that number which accepts sessions, or nil.
func (d *Domain) serving(number uint16) *endpoint {
	ep, _ := d.node.Numbers.Serving(number).(*asTenant)
	return (*endpoint)(ep)
}

// Attr returns the attributes in force.
func (d *Domain) Attr() DomainAttr { return d.attr }

// Interface describes the interface and the mode that it is used in.
func (d *Domain) Interface() InterfaceInfo { return InterfaceInfo(d.node.Dev.Info()) }

// label names the domain in the texts of errors.
func (d *Domain) label() string { return d.node.Label() }

// Name returns the address of the domain's endpoint of the given number on the Ethernet
// segment, with TransportUDP its IP address, as peers pass it to Dial or
// AddressVector.Insert. See Endpoint.Name.
func (d *Domain) Name(endpoint uint16) string { return d.node.Name(endpoint) }

// Progress moves a domain with manual progress on by one step of each engine, and returns
// how much there was to do. With automatic progress it only starts the operations that
// were posted with FlagMore.
func (d *Domain) Progress() int { return d.node.Progress() }

// Stats returns every statistic of the domain by name: the engines' counters and the
// interface's (sockets, XDP program). Operations that have completed before the call are
// counted. With manual progress the call makes progress.
func (d *Domain) Stats() (map[string]uint64, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	return d.node.Stats()
}

// PeerStats returns, for each address with which the domain has sessions, what these and
// those before them have carried, by the names that xdpfab stat peers --json has. A peer
// that began its session has the address of its node, without the number of its endpoint.
// With manual progress the call makes progress. A domain whose operations a daemon
// carries has no sessions: it gets ErrNotImplemented, and the daemon's command shows
// them.
func (d *Domain) PeerStats() (map[string]map[string]uint64, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	if d.node.Dev.GuestRing() != nil {
		return nil, errno.Refuse(ErrNotImplemented, "xdpfab: domain on %s: the sessions are those of its daemon: "+
			"ask that one, with xdpfab stat peers", d.Interface().Name)
	}
	return d.node.PeerStats(), nil
}

// closeWith closes the domain, unless it has children that must not be closed with it.
func (d *Domain) closeWith(children bool) error {
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
	d.node.Residents.Detach()
	d.mu.Lock()
	d.endObjects()
	d.node.SetClosed("this program")
	d.mu.Unlock()
	d.node.Dev.Part()
	d.node.Quiesce()
	d.calls.Wait()
	d.mu.Lock()
	d.events.cut()
	d.mu.Unlock()
	if d.fabric != nil {
		d.fabric.remove(d)
	}
	d.leave()
	return d.node.Finish()
}

// Resume starts a domain that was opened with DomainAttr.ResidentPin: packets are taken.
// Regions that were found in ResidentPin end if the program has not registered them
// again; so do the sessions to endpoints that it has not made again. Any other domain
// takes packets already, and Resume changes nothing.
func (d *Domain) Resume() { d.node.Resume() }
