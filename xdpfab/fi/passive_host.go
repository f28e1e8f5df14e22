// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// A host takes the requests for the passive endpoints of its guests, and asks for their
// connections.

// retryPlace is the time between two attempts to get a place in a queue that is full:
// requests wait at the host meanwhile.
const retryPlace = 10 * time.Millisecond

// place takes a place in the event queue, and returns what fills it, or frees it without
// a request. It returns nil when the context ends.
func (p *PassiveEndpoint) place(ctx context.Context) func(*share.Request) {
	for {
		p.listener.Mu.Lock()
		q := p.queue
		p.listener.Mu.Unlock()
		if q == nil {
			return nil
		}
		if q.promise(1) == nil {
			return func(x *share.Request) { p.hears(q, x) }
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPlace):
		}
	}
}

// hears delivers a request, for which the queue has a place, or frees the place if there
// is none.
func (p *PassiveEndpoint) hears(q *EventQueue, x *share.Request) {
	p.listener.Mu.Lock()
	defer p.listener.Mu.Unlock()
	if x == nil || p.listener.Closed || p.queue != q {
		q.release(1)
		return
	}
	(*passiveSink)(p).Deliver(&node.Request{Origin: x.Origin, Node: x.Node, From: x.From, Param: x.Data,
		Status: wire.HelloWaiting})
}

// moveIn gives another host the passive endpoint.
func (p *PassiveEndpoint) moveIn() error {
	p.listener.Mu.Lock()
	listens := p.listener.Listens
	p.listener.Mu.Unlock()
	return p.heard.Again(p.attr.toHost(), listens)
}

// askHost has the host ask for a connection, and continues once the peer has answered.
func (c *connection) askHost(to wire.Addr, param []byte) {
	ep := c.ep
	x := share.Ask{Endpoint: ep.number, Addr: to, Class: ep.attr.TrafficClass.mark(), Data: param}
	c.asks.Go(func() {
		var answer share.Answer
		err := ep.dom.node.Dev.Ask(c.left, x, &answer)
		switch {
		case c.left.Err() != nil:
		case err != nil && !errors.Is(err, ErrClosed):
			c.fail(fmt.Errorf("xdpfab: connect to %v: %w", to, err), nil)
		case err == nil:
			reply := wire.Connection{Set: true, Endpoint: answer.Endpoint, Origin: answer.Origin}
			reply.Fill(answer.Data)
			c.answered(reply, answer.Why)
		}
	})
}

// partAtHost has the host end the sessions that the peer has to this endpoint, and accept
// no other, and takes note if there was one.
func (c *connection) partAtHost() {
	if c.ep.dom.node.Dev.Parted(c.ep.identity) {
		c.met.Store(true)
	}
}
