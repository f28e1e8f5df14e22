// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// peer returns the id of the engine's peer for an address, making it at first use. A
// connected endpoint has one peer, whatever the address.
func (ep *endpoint) peer(a Address) (engine.PeerID, error) {
	if ep.conn != nil {
		a = 0
	}
	if peers := *ep.peers.Load(); int(a) < len(peers) && peers[a].name != nil {
		return peers[a].id, nil
	}
	return ep.makePeer(a)
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
