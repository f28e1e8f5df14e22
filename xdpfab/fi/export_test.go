// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/host"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/port"
	"github.com/xdpfab/xdpfab/internal/residence"
	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// A live peer is given up by no test of this package: one that wants that to happen
// makes the peer unreachable, and sets GiveUp or puts a Clock forward.
func init() {
	mayLend = true
	node.DefaultGiveUp, host.MostHeld, tryEthernet = testnet.Patience, testnet.Patience, testnet.Patience
}

// Again ends a domain of a Pipe, with farewells to its peers or as if its process had
// been killed, and returns the next life of the node: without memory or endpoints.
func (d *Domain) Again(killed bool) (*Domain, error) {
	if killed {
		if err := d.node.Dev.(node.Disturbable).Disturb(port.Faults{Loss: 1}); err != nil {
			return nil, err
		}
	}
	if err := d.CloseAll(); err != nil {
		return nil, err
	}
	dev, err := nextOf(d.node.Dev)
	if err != nil {
		return nil, err
	}
	f, err := NewFabric(d.attr)
	if err != nil {
		return nil, err
	}
	return f.adopt(dev, f.attr)
}

// nextOf returns the device of the next life of a node.
func nextOf(dev node.Device) (node.Device, error) {
	end, is := dev.(*node.PipeEnd)
	if !is {
		return socketAt(dev.Info().Name)
	}
	end.Port.SetFaults(port.Faults{})
	return &node.PipeEnd{Port: end.Port, Mac: end.Mac}, nil
}

// Clock is the time of a domain with one engine: the system's, put forward by some time.
type Clock struct {
	start time.Time
	ahead atomic.Int64 // ns
	seen  atomic.Int64 // ahead, when the domain last looked
}

// NewClock returns a clock, and the attributes with it.
func NewClock(a DomainAttr) (*Clock, DomainAttr) {
	c := &Clock{start: time.Now()}
	a.clock = func() int64 {
		ahead := c.ahead.Load()
		c.seen.Store(ahead)
		return int64(time.Since(c.start)) + ahead + 1
	}
	return c, a
}

// Ahead is how far the clock has been put forward.
func (c *Clock) Ahead() time.Duration { return time.Duration(c.ahead.Load()) }

// Forward lets time pass for a domain that was opened with the clock, in steps that do
// not look as if its process had been stopped. The domain has looked at the clock after
// each of them: an engine does not do that in every round.
func (c *Clock) Forward(by time.Duration, d *Domain) {
	for ; by > 0; by -= time.Second {
		now := c.ahead.Add(int64(min(by, time.Second)))
		for d.Err() == nil {
			d.node.Steppers[0].Call(func() {}) // a round, in which nobody else may be stepping the engine
			if c.seen.Load() >= now {
				break
			}
		}
		d.node.Steppers[0].Call(func() {}) // the timers of that round
	}
}

// Queue is the queue of the interface that the endpoint posts to.
func (ep *Endpoint) Queue() int {
	for i, st := range ep.dom.node.Steppers {
		if st == ep.stepper {
			return i
		}
	}
	return -1
}

// Depart begins to close the domain, and goes no further: what is resident is left.
func (d *Domain) Depart() { residence.Of(d.node).Detach() }

// Hosting returns the domain as the host of guests. Outside tests only the daemon is one,
// with a node of its own.
func (d *Domain) Hosting() *host.Host { return host.On(d.node) }

// Node is the node under the domain.
func (d *Domain) Node() *node.Node { return d.node }

// Lock is the domain's own.
func (d *Domain) Lock() *sync.Mutex { return &d.mu }

// EndpointAt is the domain's endpoint of that number.
func (d *Domain) EndpointAt(number uint16) *Endpoint { return handle(d.endpoints[number]) }

func handle(ep *endpoint) *Endpoint {
	if ep == nil {
		return nil
	}
	return &ep.handle
}

// Dialer is the endpoint that dialled peers share, after the first Dial.
func (d *Domain) Dialer() *Endpoint { return handle(d.dialer) }

// DialEndpoint makes that endpoint.
func (d *Domain) DialEndpoint() (*Endpoint, error) {
	ep, err := d.dialEndpoint()
	return handle(ep), err
}

// PeerAt is Dial without a session: there may be no node at the address.
func (d *Domain) PeerAt(addr wire.Addr) (*calls.Peer, error) {
	ep, err := d.dialEndpoint()
	if err != nil {
		return nil, err
	}
	link, err := d.node.Dev.Link(context.Background(), addr)
	if err != nil {
		return nil, err
	}
	use, err := ep.dial(addr, link)
	if err != nil {
		return nil, err
	}
	return ep.callPeer(use, addr.String()), nil
}

// Allotment is the part of the room of a peer that was dialled at an address.
func (d *Domain) Allotment(addr string) *calls.Allotment {
	d.dialer.mu.Lock()
	defer d.dialer.mu.Unlock()
	for a, n := range d.dialer.names {
		if a.String() == addr {
			return n.allotment
		}
	}
	return nil
}

// Adopt makes a domain of a device.
func (f *Fabric) Adopt(dev node.Device) (*Domain, error) { return f.adopt(dev, f.attr) }

// Next makes a domain of a device, which takes the place of one with that life.
func (f *Fabric) Next(dev node.Device, life uint64) (*Domain, error) {
	return f.add(newDomain(f, dev, f.attr, nil, life))
}

// WithoutClock returns the attributes for a domain that is not the one of a Clock.
func (a DomainAttr) WithoutClock() DomainAttr {
	a.clock = nil
	return a
}

// TakeOver is host.TakeOver for a domain.
func TakeOver(
	ctx context.Context, h *host.Handover, ifname string, attr DomainAttr, admit host.AdmitGuest, prepare func(*Domain) error,
) (*Domain, error) {
	f, err := NewFabric(attr)
	if err != nil {
		return nil, err
	}
	a := f.attr
	dev, at, err := h.OpenDevice(ctx, ifname, a.ResidentPin, a.options(ifname))
	if err != nil {
		return nil, fmt.Errorf("xdpfab: %w", err)
	}
	d, err := f.add(newDomain(f, dev, a, at, h.Life()))
	if err != nil {
		return nil, err
	}
	d.enter(node.Here(dev.Info().Index))
	return d.Inherit(h, admit, prepare)
}

// Inherit gives a new domain what the handover has, or closes it.
func (d *Domain) Inherit(h *host.Handover, admit host.AdmitGuest, prepare func(*Domain) error) (*Domain, error) {
	if err := h.Fill(d.node, admit, func() error { return prepare(d) }); err != nil {
		return nil, errors.Join(fmt.Errorf("xdpfab: takeover: %w", err), d.CloseAll())
	}
	return d, nil
}

// Waiting is how many callers wait for words of a region.
func Waiting(r *mr.Region) int {
	if w, is := r.Watcher().(*watch); is {
		return int(w.sleepers.count.Load())
	}
	return 0
}
