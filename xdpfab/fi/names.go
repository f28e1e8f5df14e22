// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// name is an address in use by an endpoint, however often it was dialled or inserted into
// its address vector: all these uses share one peer of the engine, and so one session.
// The engine finds out when different addresses are the same endpoint.
type name struct {
	addr wire.Addr
	peer *engine.Peer
	uses int    // under the endpoint's mu
	stop func() // ends the watch of the way there

	allotment *calls.Allotment // its part of the room for dialled peers
}

// hold returns the name of an address for one more user. ep.mu is held.
func (ep *endpoint) hold(a wire.Addr, link wire.Link) (*name, error) {
	if n := ep.names[a]; n != nil {
		n.uses++
		return n, nil
	}
	p, err := ep.origin.NewPeer(ep.marked(link), a.Lane, a.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: %v: %w", a, err)
	}
	n := &name{addr: a, peer: p, uses: 1, allotment: ep.room.Join()}
	// the encapsulation is the same, so SetLink does not fail
	n.stop = ep.dom.node.Dev.Follow(a, link, func(l wire.Link) { _ = p.SetLink(ep.marked(l)) })
	ep.names[a] = n
	return n, nil
}

// drop is called when a user of the name has ended. After the last user the session ends,
// once the operations posted before are taken, unless the endpoint is in use by another
// name. ep.mu is held.
func (ep *endpoint) drop(n *name) {
	if n.uses--; n.uses > 0 || ep.names[n.addr] != n {
		return
	}
	delete(ep.names, n.addr)
	n.stop()
	ep.room.Part()
	ep.stepper.Call(func() {
		for _, r := range ep.rings() {
			ep.stepper.Eng.Collect(r)
		}
		n.peer.Close()
	})
}

// dropAll closes every name, on the engine's thread, when the endpoint ends. ep.mu is
// held.
func (ep *endpoint) dropAll() {
	for a, n := range ep.names {
		n.stop()
		n.peer.Close()
		delete(ep.names, a)
	}
}
