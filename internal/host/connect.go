// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Admit answers the hello of an origin; see connection.admit.
func (ep *GuestEndpoint) Admit(origin uint64) wire.HelloStatus {
	switch {
	case !ep.connected || origin == ep.admits.Load():
		return wire.HelloAccepted
	case ep.asking.Load():
		return wire.HelloFull
	}
	return wire.HelloNoEndpoint
}

// ask asks for a connection, and returns when the peer has answered.
func (g *Guest) ask(ctx context.Context, a share.Ask) (x share.Answer, err error) {
	link, err := g.link(ctx, wire.Addr(a.Addr))
	if err != nil {
		g.unasked(ctx, a.Endpoint)
		return x, err
	}
	link.Class = a.Class
	answered := make(chan share.Answer, 1)
	ep, err := g.begin(a, link, func(c wire.Connection, why session.Reason) {
		answered <- share.Answer{Why: why, Endpoint: c.Endpoint, Origin: c.Origin, Data: c.Bytes()}
	})
	if err != nil {
		return x, err
	}
	select {
	case x = <-answered:
		return x, nil
	case <-ep.parted.Done():
		return x, errno.Closed
	case <-ctx.Done():
		if context.Cause(ctx) == errLeaving {
			return g.postpone(ep, answered)
		}
		return x, context.Cause(ctx)
	}
}

// unasked records that an endpoint does not ask, unless the next process is to do so.
func (g *Guest) unasked(ctx context.Context, number uint16) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	if ep := g.endpoints[number]; ep != nil && !ep.asks.Load() && context.Cause(ctx) != errLeaving {
		ep.asking.Store(false)
	}
}

// begin has an endpoint ask, once.
func (g *Guest) begin(a share.Ask, link wire.Link, answered func(wire.Connection, session.Reason)) (
	*GuestEndpoint, error) {
	g.making.Lock()
	defer g.making.Unlock()
	g.Mu.Lock()
	ep := g.endpoints[a.Endpoint]
	g.Mu.Unlock()
	switch {
	case ep == nil:
		return nil, errno.Closed
	case len(a.Data) > wire.ConnectionData:
		return nil, errno.Refuse(errno.CMData,
			"%d bytes for the peer: want at most %d", len(a.Data), wire.ConnectionData)
	case !ep.connected || !ep.asks.CompareAndSwap(false, true):
		return nil, errno.Refuse(errno.Connected,
			"endpoint %d: want one that is to be connected, and asks once", a.Endpoint)
	}
	ep.asking.Store(true)
	var err error
	g.St.Call(func() {
		ep.inquiry, err = ep.origin.Ask(link, a.Addr.Lane, a.Addr.Endpoint, a.Data,
			func(c wire.Connection, why session.Reason) {
				if why == session.Alive {
					ep.admits.Store(c.Origin)
				}
				ep.asking.Store(false)
				answered(c, why)
			})
	})
	g.St.Eng.Notify()
	if err != nil {
		ep.asking.Store(false)
		ep.asks.Store(false)
	}
	return ep, err
}

// part has an endpoint ask no more and accept no sessions.
func (g *Guest) part(_ context.Context, p share.Part) (any, error) {
	g.making.Lock()
	defer g.making.Unlock()
	g.Mu.Lock()
	ep := g.endpointOf(p.Origin)
	g.Mu.Unlock()
	if ep == nil || !ep.connected {
		return nil, errno.Closed
	}
	ep.part(g.St)
	if p.End {
		g.h.n.EndTargets(ep.number)
	}
	return share.Parted{Met: ep.met.Load()}, nil
}

// part ends what an endpoint has of a connection, but for the sessions. g.making is held.
func (ep *GuestEndpoint) part(st *node.Stepper) {
	ep.admits.Store(0)
	st.Call(func() {
		if ep.inquiry != nil {
			ep.inquiry.Cancel()
		}
	})
	ep.asking.Store(false)
	ep.leave()
}
