// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// guestPassive is a passive endpoint of a guest. Its requests wait here until the guest
// asks for them, so a guest that does not keep up has a backlog as any other program.
type guestPassive struct {
	*node.Listener
	authKey []byte          // that peers must have, as the guest gave it
	unheard []*node.Request // that the guest has not heard of; under listener.mu
	more    chan struct{}   // has room for one: there may be another one
	closed  context.Context
	close   context.CancelFunc
}

// passive makes a passive endpoint, and returns its number.
func (g *Guest) passive(_ context.Context, a share.Passive) (uint16, error) {
	backlog, err := node.Backlog(a.Backlog)
	if err = errors.Join(err, node.CheckKey(a.Key, "passive endpoint")); err != nil {
		return 0, err
	}
	g.making.Lock()
	defer g.making.Unlock()
	key, err := node.SessionKey(g.table, a.Key) // of the table that an successor has by now
	if err != nil {
		return 0, err
	}
	g.h.Mu.Lock()
	defer g.h.Mu.Unlock()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if err := g.mayNumber(1); err != nil {
		return 0, err
	}
	if a.Number == node.AnyNumber {
		a.Number = g.h.n.Numbers.SomeNumber()
	}
	number, err := g.h.n.Numbers.Take(a.Number, false, nil)
	if err != nil {
		return 0, err
	}
	p := &guestPassive{authKey: a.Key, more: make(chan struct{}, 1)}
	p.Listener = node.NewListener(g.h.n, p, number, key, backlog)
	p.closed, p.close = context.WithCancel(context.Background())
	g.settled = g.settled || key != nil // which is one of this table
	g.h.n.Numbers.Put(number, p.Listener)
	g.listeners[number] = p
	return number, nil
}

// Promise always has a place: the backlog bounds what waits here.
func (p *guestPassive) Promise() bool { return true }

// Deliver keeps a request for the guest. Any engine's thread; p.mu is held.
func (p *guestPassive) Deliver(r *node.Request) {
	p.unheard = append(
		slices.DeleteFunc(p.unheard, func(r *node.Request) bool { return r.Status != wire.HelloWaiting }), r)
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// listener returns a passive endpoint of the guest.
func (g *Guest) listener(number uint16) (*guestPassive, error) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if p := g.listeners[number]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("passive endpoint %d: %w", number, errno.Closed)
}

// listen has a passive endpoint take requests.
func (g *Guest) listen(_ context.Context, number uint16) (any, error) {
	p, err := g.listener(number)
	if err != nil {
		return nil, err
	}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Listens = true
	g.limits.Serves()
	return nil, nil
}

// hear waits for a request that the guest has not heard of.
func (g *Guest) hear(ctx context.Context, number uint16) (x share.Request, err error) {
	p, err := g.listener(number)
	if err != nil {
		return x, err
	}
	for {
		if r := p.next(); r != nil {
			return toShare(r), nil
		}
		select {
		case <-p.more:
		case <-p.closed.Done():
			return x, errno.Closed
		case <-ctx.Done():
			return x, context.Cause(ctx)
		}
	}
}

// toShare is a request as the guest hears of it.
func toShare(r *node.Request) share.Request {
	return share.Request{Origin: r.Origin, Node: share.Addr(r.Node), From: share.Addr(r.From), Data: r.Param}
}

// next takes the oldest request that waits, or returns nil.
func (p *guestPassive) next() *node.Request {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for len(p.unheard) > 0 {
		r := p.unheard[0]
		if p.unheard = p.unheard[1:]; r.Status == wire.HelloWaiting {
			return r
		}
	}
	return nil
}

// reply answers a request.
func (g *Guest) reply(_ context.Context, a share.Decision) (any, error) {
	p, err := g.listener(a.Passive)
	if err != nil {
		return nil, err
	}
	if len(a.Data) > wire.ConnectionData {
		return nil, errno.Refuse(errno.CMData,
			"%d bytes for the peer: want at most %d", len(a.Data), wire.ConnectionData)
	}
	r := p.Find(a.Origin)
	if r == nil {
		return nil, fmt.Errorf("request of %#x: %w: its peer has stopped asking", a.Origin, errno.PeerSilent)
	}
	status, answer := wire.HelloRejected, wire.Connection{Set: true}
	answer.Fill(a.Data)
	if a.Accepted {
		g.Mu.Lock()
		ep := g.endpoints[a.Endpoint]
		g.Mu.Unlock()
		if ep == nil || !ep.connected {
			return nil, errno.Refuse(errno.Closed, "endpoint %d: want one that is to be connected", a.Endpoint)
		}
		ep.admits.Store(r.Origin)
		status, answer.Endpoint, answer.Origin = wire.HelloConnect, ep.number, ep.identity
	}
	return nil, p.Answer(r, status, answer)
}

// unlisten closes a passive endpoint.
func (g *Guest) unlisten(_ context.Context, number uint16) (any, error) {
	p, err := g.listener(number)
	if err != nil {
		return nil, err
	}
	g.Mu.Lock()
	delete(g.listeners, number)
	g.Mu.Unlock()
	p.End()
	p.close()
	g.h.n.Numbers.Drop(number, p.Listener)
	return nil, nil
}
