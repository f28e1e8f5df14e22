// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/mr"
)

// Register lets peers address memory (fi_mr_reg): all of m or the part that the
// options name, by a key that is chosen by the user or, unguessable, by the
// provider. A region with a name is published: peers find key and size with
// Peer.Lookup. Closing the region deregisters it; the domain's CloseAll does so too.
//
// Operations of the node's own code on the bytes by sync/atomic are atomic against those
// of peers, element by element. So are operations of another process on the same memory,
// except on elements of 32 bytes and complex ones that are not aligned to their whole
// size: those are exclusive within one process only.
//
// Behind a daemon, memory that is in no memfd (mr.Alloc, mr.File, mr.Adopt) is one that
// only this program has mapped, and executes operations on. Peers then find it by its key
// alone, cannot wait for its words, and cannot signal in it.
func (d *Domain) Register(m *mr.Memory, o mr.Options) (*mr.Region, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	defer d.stay()()
	d.node.Mu.Lock()
	defer d.node.Mu.Unlock()
	return d.node.Register(m, o)
}

// NewRegion allocates zeroed memory of size bytes, on huge pages when there are any, and
// registers it under a name with all rights. It is freed when the domain closes. At a
// Pipe the memory is of the Go heap, and stays as long as anything points to it.
func (d *Domain) NewRegion(name string, size int) (*mr.Region, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	m, err := d.node.Allocate(name, size)
	if err != nil {
		return nil, errno.Line("xdpfab: region %q: %w", name, err)
	}
	defer d.stay()()
	d.node.Mu.Lock()
	defer d.node.Mu.Unlock()
	return d.node.RegisterOwned(m, name, size)
}

// RemoteRegion describes a region of a peer, as Peer.Lookup finds it in the peer's
// catalogue, or as [mr.Region.Remote] describes one of the node's own.
type RemoteRegion = mr.RemoteRegion

// Lookup finds a region of the peer at an address of the endpoint's address vector, as
// Peer.Lookup does, on the session that the endpoint's operations take. It waits first
// for room among the operations under way and in the completion queue, and then for the
// answer. It makes no completion, and no counter counts it.
func (ep *Endpoint) Lookup(ctx context.Context, dest Address, name string) (RemoteRegion, error) {
	if err := ep.there(); err != nil {
		return RemoteRegion{}, err
	}
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
