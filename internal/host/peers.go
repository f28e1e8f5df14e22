// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A list of peers is one call: one text each way, one search for each node, and one visit
// to the engine's thread. First all ways are found, and then all peers are made: a call
// that the next process makes again has done nothing here.

// peersOf gives numbers to the peers of a list, in their order.
func (g *Guest) peersOf(ctx context.Context, list share.PeerList) ([]share.PeerReply, error) {
	if n := len(list.Addrs); n > share.MostPeers {
		return nil, errno.Refuse(errno.Length, "a list of %d peers: want at most %d", n, share.MostPeers)
	}
	ways, err := g.ways(ctx, list.Addrs)
	if err != nil {
		return nil, err
	}
	g.making.Lock()
	defer g.making.Unlock()
	replies, targets := make([]share.PeerReply, len(list.Addrs)), make([]*share.Target, len(list.Addrs))
	for i, a := range list.Addrs {
		way := ways[nodeOf(a)]
		link, err := way.link, way.err
		if link.Class = list.Class; err == nil {
			targets[i], err = g.makePeer(share.Peer{Origin: list.Origin, Addr: a, Class: list.Class}, link)
		}
		if err != nil {
			replies[i] = peerFailure(err)
			continue
		}
		replies[i].Number = g.nextPeer()
	}
	g.St.Call(func() {
		for i, t := range targets {
			if t != nil {
				g.Ring.SetTarget(replies[i].Number, t)
			}
		}
	})
	return replies, nil
}

// mostReason is how much of an error the reply to a list has: all replies have to fit one
// text.
const mostReason = 256

func peerFailure(err error) share.PeerReply {
	r := failure(0, err)
	return share.PeerReply{Error: r.Error[:min(len(r.Error), mostReason)], Errno: r.Errno, Kinds: r.Kinds}
}

// nodeOf is an address without the endpoint.
func nodeOf(a share.Addr) wire.Addr { return wire.Addr{MAC: a.MAC, IP: a.IP} }

// way is a way to a node, or why there is none.
type way struct {
	link wire.Link
	err  error
}

// ways finds the ways to all nodes of a list, side by side. A search costs what a call
// does.
func (g *Guest) ways(ctx context.Context, list []share.Addr) (map[wire.Addr]*way, error) {
	all := map[wire.Addr]*way{}
	for _, a := range list {
		all[nodeOf(a)] = &way{}
	}
	cost := CallCost * len(all)
	if err := g.pays.use(cost); err != nil {
		return nil, err
	}
	defer g.pays.free(cost)
	var searches sync.WaitGroup
	for a, w := range all {
		searches.Go(func() { w.link, w.err = g.link(ctx, a) })
	}
	searches.Wait()
	if errors.Is(context.Cause(ctx), errLeaving) {
		return nil, errLeaving
	}
	return all, nil
}
