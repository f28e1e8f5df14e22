// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
)

// outlives reports whether the domain can go on with another host. With ThreadDomain only
// the caller's goroutine may use the engine, so such a domain ends with its host.
func (d *Domain) outlives() bool { return d.attr.Threading != ThreadDomain }

// stay keeps the domain from moving to another host until the function that it returns is
// called. What makes, changes or closes something that a host has calls it first.
func (d *Domain) stay() (done func()) { return d.node.Dev.Stay() }

// moveIn gives another host the endpoints and peers of the domain, and returns the
// numbers of the peers.
func (d *Domain) moveIn(ctx context.Context) (map[*engine.Peer]uint32, error) {
	d.mu.Lock()
	blocks := map[int]int{} // length of each, by first number
	for _, b := range d.node.Numbers.Reserved() {
		blocks[b.First] = b.Length
	}
	var eps []*endpoint
	for _, ep := range d.endpoints {
		eps = append(eps, ep)
	}
	d.mu.Unlock()
	numbers := map[*engine.Peer]uint32{}
	var errs []error
	for number, length := range blocks {
		_, _, err := d.node.Dev.Block(number, length)
		errs = append(errs, err)
	}
	for _, ep := range eps {
		errs = append(errs, ep.moveIn(ctx, numbers))
	}
	for _, p := range d.passives() {
		errs = append(errs, p.moveIn())
	}
	return numbers, errno.Join(errs...)
}

// moveIn gives another host the endpoint and its peers.
func (ep *endpoint) moveIn(ctx context.Context, numbers map[*engine.Peer]uint32) error {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	phase, dev := ep.phase.Load(), ep.dom.node.Dev
	if phase == shutOff {
		return nil
	}
	attr := ep.attr
	if attr.InitiateOnly { // no peer addresses it, and another program may have its number by now
		attr.Number = AnyNumber
	}
	if _, _, err := dev.Number(attr.toHost(ep.identity)); err != nil {
		return err
	}
	if phase != made && !ep.attr.InitiateOnly {
		if err := ep.serveAtHost(); err != nil {
			return err
		}
	}
	for addr, n := range ep.names {
		number, err := dev.Peer(ctx, share.Peer{Origin: ep.identity, Addr: share.Addr(addr),
			Class: ep.attr.TrafficClass.mark(), Next: n.next})
		if err != nil {
			return err
		}
		numbers[n.peer] = number
	}
	return nil
}
