// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// linker is a device that searches for next hops, and needs none if it is told it.
type linker interface {
	LinkBy(a wire.Addr, next wire.MAC) (wire.Link, error)
}

// way finds the way to a peer. If another node has the address of the next hop by now,
// meetPeer has that corrected.
func (g *Guest) way(ctx context.Context, p *share.Peer) (wire.Link, error) {
	const group = 1 // in the first byte of the address of many nodes
	addr := wire.Addr(p.Addr)
	dev, searches := g.h.n.Dev.(linker)
	if searches && addr.IsIP() && p.Next != (wire.MAC{}) && p.Next[0]&group == 0 {
		return dev.LinkBy(addr, p.Next)
	}
	return g.link(ctx, addr)
}

// peerOf finds the way to a peer, and gives it a number.
func (g *Guest) peerOf(ctx context.Context, p share.Peer) (uint32, error) {
	link, err := g.way(ctx, &p)
	if err != nil {
		return 0, err
	}
	link.Class = p.Class
	g.making.Lock()
	defer g.making.Unlock()
	number := g.nextPeer()
	return number, g.meetPeer(number, p, link)
}

func (g *Guest) nextPeer() uint32 {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	g.peers++
	return g.peers
}

// meetPeer makes the peer of a number, at the end of a link. g.making is held.
func (g *Guest) meetPeer(number uint32, p share.Peer, link wire.Link) error {
	t, err := g.makePeer(p, link)
	if err == nil {
		g.St.Call(func() { g.Ring.SetTarget(number, t) })
	}
	return err
}

// makePeer makes a peer at the end of a link. g.making is held.
func (g *Guest) makePeer(p share.Peer, link wire.Link) (*share.Target, error) {
	g.Mu.Lock()
	ep := g.endpointOf(p.Origin)
	g.Mu.Unlock()
	switch {
	case ep == nil || ep.left:
		return nil, errno.Closed
	case g.open.Load() >= int64(g.limits.Peers):
		return nil, g.tooMany("peers", g.limits.Peers)
	}
	if err := g.pays.use(peerCost); err != nil {
		return nil, err
	}
	peer, err := ep.origin.NewPeer(link, p.Addr.Lane, p.Addr.Endpoint)
	if err != nil {
		g.pays.free(peerCost)
		return nil, err
	}
	g.open.Add(1)
	stop := g.h.n.Dev.Follow(wire.Addr(p.Addr), link, func(l wire.Link) {
		l.Class = p.Class
		_ = peer.SetLink(l) // the encapsulation is the same
	})
	gone := func() {
		g.stops.Add(stop) // it may wait for the watcher, which may wait for the engine
		g.open.Add(-1)
		g.pays.free(peerCost)
	}
	return &share.Target{Ring: ep.ring, Peer: peer, As: p, Gone: gone}, nil
}
