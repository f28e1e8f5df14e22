// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// hearing is a passive endpoint of a domain whose host takes the requests: a goroutine
// asks for one after the other. All methods may be called on nil, for a domain that takes
// them itself.
type hearing struct {
	p      *PassiveEndpoint
	closed context.Context
	close  context.CancelFunc

	mu    sync.Mutex // held while the goroutine begins and ends
	halt  func()     // ends the goroutine; nil before there is one
	ended bool
	asks  sync.WaitGroup
}

func newHearing(p *PassiveEndpoint) *hearing {
	h := &hearing{p: p}
	h.closed, h.close = context.WithCancel(context.Background())
	return h
}

// passive has the host make a passive endpoint, and returns its number.
func (a *attached) passive(attr *PassiveAttr) (number uint16, err error) {
	x := share.Passive{Number: attr.Number, Backlog: attr.Backlog, Key: attr.AuthKey}
	if err := a.call(context.Background(), share.CallPassive, x, &number); err != nil {
		return 0, fmt.Errorf("xdpfab: passive endpoint: %w", err)
	}
	return number, nil
}

// listen has the host listen. Later calls change nothing.
func (h *hearing) listen() error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.halt != nil {
		return nil
	}
	return h.begin()
}

// again has another host listen. What asked the former one asks no more: it may have been
// waiting for a place, and not have noticed that it ended.
func (h *hearing) again() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.halt != nil {
		h.halt()
	}
	return h.begin()
}

// begin has the host listen, and asks it for requests. mu is held.
func (h *hearing) begin() error {
	if err := h.p.dom.attached.call(context.Background(), share.CallListen, h.p.number, nil); err != nil {
		return fmt.Errorf("xdpfab: passive endpoint %d: %w", h.p.number, err)
	}
	if h.ended {
		return nil
	}
	ctx, halt := context.WithCancel(h.closed)
	h.halt = halt
	h.asks.Go(func() { h.ask(ctx) })
	return nil
}

// ask asks the host for requests, until it ends or the context does.
func (h *hearing) ask(ctx context.Context) {
	for ctx.Err() == nil {
		q := h.place(ctx)
		if q == nil {
			return
		}
		var x share.Request
		if err := h.p.dom.attached.listenFor(ctx, share.CallHear, h.p.number, &x); err != nil {
			q.release(1)
			return
		}
		h.p.hears(q, &x)
	}
}

// retryPlace is the time between two attempts to get a place in a queue that is full:
// requests wait at the host meanwhile.
const retryPlace = 10 * time.Millisecond

// place takes a place in the event queue; it returns nil when the context ends.
func (h *hearing) place(ctx context.Context) *EventQueue {
	for {
		h.p.mu.Lock()
		q := h.p.queue
		h.p.mu.Unlock()
		if q == nil {
			return nil
		}
		if q.promise(1) == nil {
			return q
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPlace):
		}
	}
}

// hears delivers a request, for which the queue has a place.
func (p *PassiveEndpoint) hears(q *EventQueue, x *share.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || p.queue != q {
		q.release(1)
		return
	}
	p.deliver(&ConnRequest{pep: p, origin: x.Origin, node: x.Node, from: x.From, param: x.Data, status: wire.HelloWaiting})
}

// reply has the host answer a request.
func (h *hearing) reply(r *ConnRequest, status wire.HelloStatus, reply wire.Connection) error {
	p := h.p
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	if closed {
		return p.errClosed()
	}
	x := share.Decision{Passive: p.number, Origin: r.origin, Accepted: status == wire.HelloConnect, Endpoint: reply.Endpoint, Data: reply.Bytes()}
	if err := p.dom.attached.call(context.Background(), share.CallReply, x, nil); err != nil {
		return fmt.Errorf("xdpfab: request of %v: %w", r.from, err)
	}
	return nil
}

// end ends the goroutine, and closes the endpoint at the host, which has none any more
// when it has ended.
func (h *hearing) end() {
	if h == nil {
		return
	}
	h.close()
	h.mu.Lock()
	first := !h.ended
	h.ended = true
	h.mu.Unlock()
	h.asks.Wait()
	if first {
		_ = h.p.dom.attached.call(context.Background(), share.CallUnlisten, h.p.number, nil)
	}
}

// moveIn gives another host the passive endpoint.
func (p *PassiveEndpoint) moveIn() error {
	if p.heard.closed.Err() != nil {
		return nil
	}
	if _, err := p.dom.attached.passive(&p.attr); err != nil {
		return err
	}
	p.mu.Lock()
	listens := p.listens
	p.mu.Unlock()
	if listens {
		return p.heard.again()
	}
	return nil
}

// askHost has the host ask for a connection, and goes on when the peer has answered.
func (c *connection) askHost(to wire.Addr, param []byte) {
	a, ep := c.ep.dom.attached, c.ep
	x := share.Ask{Endpoint: ep.number, Addr: to, Class: ep.attr.TrafficClass.mark(), Data: param}
	c.asks.Go(func() {
		var answer share.Answer
		err := a.listenFor(c.left, share.CallAsk, x, &answer)
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
	a := c.ep.dom.attached
	if a == nil {
		return
	}
	var x share.Parted
	if a.call(context.Background(), share.CallPart, share.Part{Origin: c.ep.identity, End: true}, &x) == nil && x.Met {
		c.met.Store(true)
	}
}
