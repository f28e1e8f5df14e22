// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Connections of guests move to another process: whom an endpoint accepts, and the
// requests that passive endpoints have, with their answers. A request that the guest has
// made is made again there: the peer knows its origin, and gives the answer that it gave
// before.

// connectionState is the state of a connection apart from its sessions.
type connectionState struct {
	Asks   bool   // it has been answered, or need not be asked for
	Asking bool   // the next process continues the guest's call
	Admits uint64 // the origin whose sessions are accepted
	Met    bool   // one has been
}

// passiveState is a passive endpoint of a guest.
type passiveState struct {
	As       share.Passive
	Listens  bool
	Requests []requestState // the one heard last at the end
}

// requestState is a request that waits, or has been answered.
type requestState struct {
	Request share.Request
	Status  wire.HelloStatus
	Reply   wire.Connection
	Silent  int64 // nanoseconds since it was heard last
	Unheard bool  // the guest has not asked for it yet
}

// postpone ends the wait for an answer that the next process is to ask for, unless it has
// come by now.
func (g *Guest) postpone(ep *GuestEndpoint, answered <-chan share.Answer) (x share.Answer, err error) {
	g.making.Lock()
	defer g.making.Unlock()
	g.St.Call(func() { ep.inquiry.Cancel() })
	select {
	case x = <-answered:
		return x, nil
	default:
		ep.asks.Store(false)
		return x, errLeaving
	}
}

// connection returns the state of the endpoint's connection, or nil without one.
func (ep *GuestEndpoint) connection() *connectionState {
	if !ep.connected {
		return nil
	}
	return &connectionState{Asks: ep.asks.Load(), Asking: ep.asking.Load(), Admits: ep.admits.Load(),
		Met: ep.met.Load()}
}

// reconnect gives an endpoint the connection that it had.
func (ep *GuestEndpoint) reconnect(s *connectionState) {
	if s != nil {
		ep.asks.Store(s.Asks)
		ep.asking.Store(s.Asking)
		ep.admits.Store(s.Admits)
		ep.met.Store(s.Met)
	}
}

// passives returns the passive endpoints of a guest. The engines are paused.
func (g *Guest) passives() (all []passiveState) {
	g.Mu.Lock()
	defer g.Mu.Unlock()
	for _, p := range g.listeners {
		all = append(all, p.state())
	}
	return all
}

func (p *guestPassive) state() passiveState {
	p.Mu.Lock()
	defer p.Mu.Unlock()
	s := passiveState{As: share.Passive{Number: int(p.Number), Backlog: p.Backlog, Key: p.authKey}, Listens: p.Listens}
	unheard := map[*node.Request]bool{}
	for _, r := range p.unheard {
		unheard[r] = true
	}
	for x := p.Recent.Front(); x != nil; x = x.Next() {
		r := x.Value.(*node.Request)
		s.Requests = append(s.Requests,
			requestState{toShare(r), r.Status, r.Reply, p.N.Now() - r.HeardAt, unheard[r]})
	}
	return s
}

// restorePassive makes a passive endpoint that a guest had.
func (g *Guest) restorePassive(s *passiveState) error {
	number, err := g.passive(context.Background(), s.As)
	if err != nil {
		return err
	}
	p, err := g.listener(number)
	if err != nil {
		return err
	}
	p.Mu.Lock()
	defer p.Mu.Unlock()
	p.Listens = s.Listens
	for i := range s.Requests {
		p.restore(&s.Requests[i])
	}
	return nil
}

// restore records a request that was made at the former process. p.mu is held.
func (p *guestPassive) restore(s *requestState) {
	x := &s.Request
	r := &node.Request{Origin: x.Origin, Node: wire.Addr(x.Node), From: wire.Addr(x.From), Param: x.Data,
		Status: s.Status, Reply: s.Reply, HeardAt: p.N.Now() - s.Silent}
	p.Remember(r)
	if s.Unheard {
		p.Deliver(r)
	}
}
