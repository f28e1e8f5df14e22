// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/mr"
)

// RemoteRegion describes a region of a peer, as Peer.Lookup finds it in the peer's
// catalogue. The region itself, in the memory of the node that registered it, is an
// [mr.Region].
//
// A caller that has learnt a region's key by other means fills in the Key; also the Base
// if the region is addressed virtually, and the Incarnation if only this registration is
// meant. A Size of 0 means that the size is not known.
type RemoteRegion struct {
	Name   string // in the catalogue; empty for a region that is known by its key
	Key    uint64
	Size   uint64 // bytes
	Base   uint64 // Msg.Offset of the first byte: 0, or its virtual address
	Access mr.Access
	// Incarnation tells this registration from every other one, including later ones
	// under the same name or key, and those after a restart. A registration never has 0;
	// 0 means any registration that has the key.
	Incarnation uint32
}

// Lookup finds a region of the peer at an address of the endpoint's address vector, as
// Peer.Lookup does, on the session that the endpoint's operations take. It waits first
// for room among the operations under way and in the completion queue, and then for the
// answer. It makes no completion, and no counter counts it.
func (ep *Endpoint) Lookup(ctx context.Context, dest Address, name string) (RemoteRegion, error) {
	p, err := ep.asPeer(dest)
	if err != nil {
		return RemoteRegion{}, err
	}
	for {
		r, err := p.Lookup(ctx, name)
		if !errors.Is(err, ErrAgain) {
			return RemoteRegion(r), err
		}
		select {
		case <-ctx.Done(): // the next attempt returns the error
		case <-time.After(drainPoll):
		}
	}
}

// asPeer returns an address of the address vector as a peer whose calls the endpoint
// itself posts. It must not be closed: the address vector holds the session.
func (ep *endpoint) asPeer(a Address) (*calls.Peer, error) {
	if !ep.ready() {
		return nil, ep.unready()
	}
	if _, err := ep.peer(a); err != nil {
		return nil, err
	}
	n := (*ep.peers.Load())[a].name
	if n == nil {
		return nil, fmt.Errorf("xdpfab: address %d was removed: %w", a, ErrUnknownPeer)
	}
	r := ep.route(n, n.addr.String())
	r.Cookie = asked
	return &calls.Peer{Route: r}, nil
}
