// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"encoding/json"
	"maps"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// knownWay is what the borrower knows of the way to an address.
type knownWay struct {
	link wire.Link // as the borrower knows it; under loan.mu
	stop func()
}

// follow tells the borrower from now on when the way to an address changes.
func (g *Guest) follow(_ context.Context, f share.Follow) (any, error) {
	x := g.holds.(*loan)
	x.mu.Lock()
	old := x.ways[f.Addr]
	if old == nil && len(x.ways) >= g.limits.Peers {
		x.mu.Unlock()
		return nil, g.tooMany("peers", g.limits.Peers)
	}
	delete(x.moved, f.Addr) // the borrower knows a newer way
	w := &knownWay{link: f.Link}
	x.ways[f.Addr] = w
	w.stop = g.h.n.Dev.Follow(f.Addr, f.Link, func(l wire.Link) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.moved[f.Addr] = l
		select {
		case x.wake <- struct{}{}:
		default:
		}
	})
	x.mu.Unlock()
	if old != nil {
		old.stop()
		return nil, nil
	}
	g.open.Add(1)
	return nil, nil
}

// endFollow ends what follow began.
func (g *Guest) endFollow(_ context.Context, a wire.Addr) (any, error) {
	x := g.holds.(*loan)
	x.mu.Lock()
	old := x.ways[a]
	delete(x.ways, a)
	delete(x.moved, a)
	x.mu.Unlock()
	if old != nil {
		old.stop()
		g.open.Add(-1)
	}
	return nil, nil
}

// tell sends the borrower the ways that have changed. It is not the watcher that does so:
// the borrower may be slow to listen.
func (x *loan) tell(talk *share.Talk) {
	for {
		select {
		case <-x.done:
			return
		case <-x.wake:
		}
		x.mu.Lock()
		moved := x.moved
		x.moved = map[wire.Addr]wire.Link{}
		ways := maps.Clone(x.ways)
		x.mu.Unlock()
		for a, l := range moved {
			if text, err := json.Marshal(share.Moved{Addr: a, Link: l}); err == nil &&
				talk.Send(share.Reply{Result: text}) == nil {
				x.told(ways[a], l)
			}
		}
	}
}

// told notes what the borrower knows now.
func (x *loan) told(w *knownWay, l wire.Link) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if w != nil {
		w.link = l
	}
}

// silent has the way to a peer looked up anew.
func (g *Guest) silent(_ context.Context, remote netip.Addr) (any, error) {
	g.h.n.Dev.Silent(remote)
	return nil, nil
}
