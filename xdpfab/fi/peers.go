// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"maps"
	"slices"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// name is an address in use by an endpoint, however often it was dialled or inserted into
// its address vector: all these uses share one peer of the engine, and so one session.
// The engine finds out when different addresses are the same endpoint.
type name struct {
	addr wire.Addr
	next wire.MAC // the next hop, as it was known first
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
	n := &name{addr: a, next: link.Remote, peer: p, uses: 1, allotment: ep.room.Join()}
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

// peer returns the id of the engine's peer for an address, making it at first use. A
// connected endpoint has one peer, whatever the address.
func (ep *endpoint) peer(a Address) (engine.PeerID, error) {
	if k := ep.knownPeer(*ep.peers.Load(), a); k != nil {
		return k.id, nil
	}
	return ep.makePeer(a)
}

// knownPeer finds an address among those that the endpoint has used.
func (ep *endpoint) knownPeer(peers []known, a Address) *known {
	if ep.conn != nil {
		a = 0
	}
	if int(a) < len(peers) && peers[a].name != nil {
		return &peers[a]
	}
	return nil
}

func (ep *endpoint) makePeer(a Address) (engine.PeerID, error) {
	if ep.conn != nil {
		ep.conn.mu.Lock()
		defer ep.conn.mu.Unlock()
		return 0, ep.conn.unready()
	}
	if k, is := ep.contextPeer(a); is {
		return k.id, nil
	}
	ep.mu.Lock()
	av := ep.av
	ep.mu.Unlock()
	if av == nil {
		return 0, fmt.Errorf("xdpfab: endpoint %d cannot post: %w is bound", ep.number, ErrNoAV)
	}
	if err := av.reach(a); err != nil { // may wait, if the vector is shared
		return 0, err
	}
	defer ep.dom.stay()()
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if k, is := ep.contextPeer(a); is {
		return k.id, nil
	}
	entry, err := av.lookup(a) // again: Remove calls dropPeer afterwards
	if err != nil {
		return 0, err
	}
	if !ep.ready() {
		return 0, ep.unready()
	}
	if a.context() != 0 {
		n, err := ep.hold(entry.addr, entry.link)
		if err != nil {
			return 0, err
		}
		ep.setContextPeer(a, known{n.peer.ID(), n})
		return n.peer.ID(), nil
	}
	peers := slices.Clone(*ep.peers.Load())
	for len(peers) <= int(a) {
		peers = append(peers, known{})
	}
	if peers[a].name == nil {
		n, err := ep.hold(entry.addr, entry.link)
		if err != nil {
			return 0, err
		}
		peers[a] = known{n.peer.ID(), n}
		ep.peers.Store(&peers)
	}
	return peers[a].id, nil
}

// dropPeer drops the names of an address and its receive contexts; see drop.
func (ep *endpoint) dropPeer(a Address) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.dropContextPeers(a.entry())
	peers := slices.Clone(*ep.peers.Load())
	if int(a) >= len(peers) || peers[a].name == nil {
		return
	}
	n := peers[a].name
	peers[a] = known{}
	ep.peers.Store(&peers)
	ep.drop(n)
}

// dial holds a name that needs no address vector, and disconnect drops it.
func (ep *endpoint) dial(a wire.Addr, link wire.Link) (*name, error) {
	defer ep.dom.stay()()
	ep.mu.Lock()
	defer ep.mu.Unlock()
	if !ep.ready() {
		return nil, ep.unready()
	}
	return ep.hold(a, link)
}

func (ep *endpoint) disconnect(n *name) {
	ep.mu.Lock()
	defer ep.mu.Unlock()
	ep.drop(n)
}

// An Address has the index of an entry of the address vector in its low bits, and above
// them the number of a receive context of a scalable endpoint.
const (
	entryBits = 25
	// MaxContexts is the most transmit contexts, and the most receive contexts, of a
	// scalable endpoint.
	MaxContexts = node.MaxBlock

	maxEntries = 1<<entryBits - 1 // the last one is part of NoAddress
)

// RXAddress returns the address of a receive context of the scalable endpoint at a, where
// the first one is 0 (fi_rx_addr, FI_NAMED_RX_CTX). An address with another context, or a
// number that no context can have, is refused.
func RXAddress(a Address, context int) (Address, error) {
	if context < 0 || context >= MaxContexts {
		return NoAddress, errno.Refuse(ErrUnknownPeer,
			"xdpfab: receive context %d: want 0..%d", context, MaxContexts-1)
	}
	if a.context() != 0 {
		return NoAddress,
			errno.Refuse(ErrUnknownPeer,
				"xdpfab: address %#x is that of receive context %d: want that of the scalable endpoint",
				uint32(a), a.context())
	}
	return a | Address(context)<<entryBits, nil
}

// entry returns the index in the address vector, and context the receive context.
func (a Address) entry() int   { return int(a & (1<<entryBits - 1)) }
func (a Address) context() int { return int(a >> entryBits) }

// contextPeer returns the peer of a receive context's address, if it has been used.
func (ep *endpoint) contextPeer(a Address) (known, bool) {
	if peers := ep.contextPeers.Load(); peers != nil {
		k, is := (*peers)[a]
		return k, is
	}
	return known{}, false
}

// setContextPeer records the peer of a receive context's address. ep.mu is held.
func (ep *endpoint) setContextPeer(a Address, k known) {
	peers := map[Address]known{}
	if old := ep.contextPeers.Load(); old != nil {
		peers = maps.Clone(*old)
	}
	peers[a] = k
	ep.contextPeers.Store(&peers)
}

// dropContextPeers drops the names of all receive contexts at an entry of the address
// vector. ep.mu is held.
func (ep *endpoint) dropContextPeers(entry int) {
	old := ep.contextPeers.Load()
	if old == nil {
		return
	}
	peers := maps.Clone(*old)
	maps.DeleteFunc(peers, func(a Address, _ known) bool { return a.entry() == entry })
	ep.contextPeers.Store(&peers)
	for a, k := range *old {
		if a.entry() == entry {
			ep.drop(k.name)
		}
	}
}

// full returns an error if no entry is left. av.mu is held.
func (av *AddressVector) full() error {
	if len(av.entries) < maxEntries {
		return nil
	}
	return errno.Refuse(ErrTooMany,
		"xdpfab: address vector: all %d entries are in use, and none is used again: make another vector",
		maxEntries)
}
