// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// PassiveEndpoint takes requests for connections (fi_passive_ep). It belongs to a domain,
// since only an interface that is open receives: bind an event queue, Listen, and make an
// endpoint of type EndpointMsg for each request that is to be accepted.
type PassiveEndpoint struct {
	dom      *Domain
	attr     PassiveAttr
	listener *node.Listener
	heard    node.Requests // of a domain that is a guest; see attached_passive.go
	queue    *EventQueue   // under listener.mu
}

// PassiveAttr are the attributes of a passive endpoint. The zero value of a field means
// its default.
type PassiveAttr struct {
	// Number is the number by which peers address it, one that no endpoint has. AnyNumber
	// picks a free one.
	Number int
	// Backlog is the most requests that wait for an answer (FI_BACKLOG), 1..4096; 64. A
	// node may have as many of them as are left for all others. The rest is not lost: the
	// peers ask again, until they give up.
	Backlog int
	AuthKey AuthKey // that peers must have; none leaves it to DomainAttr.AuthKey
	Context any     // comes back with each event
}

// NewPassiveEndpoint makes a passive endpoint (fi_passive_ep).
func (d *Domain) NewPassiveEndpoint(attr PassiveAttr) (*PassiveEndpoint, error) {
	if err := d.there(); err != nil {
		return nil, err
	}
	defer d.stay()()
	attr, err := attr.withDefaults()
	if err != nil {
		return nil, err
	}
	attr.AuthKey = attr.AuthKey.or(d.attr.AuthKey)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.node.Open(); err != nil {
		return nil, err
	}
	key, err := d.node.Session(attr.AuthKey)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: passive endpoint: %w", err)
	}
	number, err := d.pickPassive(&attr)
	if err != nil {
		return nil, err
	}
	attr.Number = int(number)
	p := &PassiveEndpoint{dom: d, attr: attr}
	p.listener = node.NewListener(d.node, (*passiveSink)(p), number, key, attr.Backlog)
	p.heard = d.node.Dev.ListenAtHost(number, p.place)
	d.node.Numbers.Put(number, p.listener)
	d.children[p] = fmt.Sprintf("passive endpoint %d", number)
	return p, nil
}

// withDefaults checks the attributes and fills in the defaults.
func (a PassiveAttr) withDefaults() (PassiveAttr, error) {
	var err error
	if a.Backlog, err = node.Backlog(a.Backlog); err != nil {
		return a, err
	}
	return a, a.AuthKey.check("passive endpoint")
}

// pickPassive checks or chooses the number of a passive endpoint, which the host of a
// domain that has one makes. d.mu is held.
func (d *Domain) pickPassive(attr *PassiveAttr) (uint16, error) {
	number, given, err := d.node.Dev.Passive(attr.toHost())
	switch {
	case err != nil:
		return 0, fmt.Errorf("xdpfab: passive endpoint: %w", err)
	case given:
		return number, nil
	}
	return d.node.Numbers.Take(attr.Number, false, nil)
}

// toHost describes a passive endpoint for a host.
func (a *PassiveAttr) toHost() share.Passive {
	return share.Passive{Number: a.Number, Backlog: a.Backlog, Key: a.AuthKey}
}

// Attr returns the attributes in force.
func (p *PassiveEndpoint) Attr() PassiveAttr { return p.attr }

// Name returns the address of the passive endpoint on its Ethernet segment, for
// Endpoint.Connect (fi_getname).
func (p *PassiveEndpoint) Name() string { return p.dom.Name(p.listener.Number) }

// Bind binds the event queue that gets the requests (fi_pep_bind).
func (p *PassiveEndpoint) Bind(q *EventQueue) error {
	if err := p.there(); err != nil {
		return err
	}
	p.listener.Mu.Lock()
	defer p.listener.Mu.Unlock()
	switch {
	case p.listener.Closed:
		return p.listener.ErrClosed()
	case q == nil:
		return fmt.Errorf("xdpfab: passive endpoint %d: nothing to bind: %w", p.listener.Number, ErrNoEQ)
	case q.fabric != p.dom.fabric:
		return errno.Refuse(ErrForeign,
			"xdpfab: passive endpoint %d: the event queue is of another fabric: want one of the same",
			p.listener.Number)
	case p.queue != nil:
		return errno.Refuse(ErrBusy, "xdpfab: passive endpoint %d has an event queue: want one", p.listener.Number)
	}
	if err := q.use(); err != nil {
		return err
	}
	q.drive(p.dom)
	p.queue = q
	return nil
}

// Listen takes requests from now on (fi_listen): each is an EventConnReq.
func (p *PassiveEndpoint) Listen() error {
	if err := p.there(); err != nil {
		return err
	}
	defer p.dom.stay()()
	p.listener.Mu.Lock()
	defer p.listener.Mu.Unlock()
	switch {
	case p.listener.Closed:
		return p.listener.ErrClosed()
	case p.queue == nil:
		return fmt.Errorf("xdpfab: passive endpoint %d: %w: bind one first", p.listener.Number, ErrNoEQ)
	}
	p.listener.Listens = true
	return p.heard.Listen()
}

// Close ends the endpoint. Waiting requests are refused, and so are peers that have not
// yet heard that they were accepted: close it after their EventConnected. Closing twice
// is no error.
func (p *PassiveEndpoint) Close() error {
	if err := p.there(); err != nil {
		return err
	}
	defer p.dom.stay()()
	p.closeNow()
	p.heard.End()
	if p.dom.node.Numbers.Drop(p.listener.Number, p.listener) {
		p.dom.node.Dev.GiveBack(p.listener.Number, 1)
	}
	p.dom.remove(p)
	return nil
}

func (p *PassiveEndpoint) closeNow() {
	p.listener.Mu.Lock()
	defer p.listener.Mu.Unlock()
	p.listener.Closed, p.listener.Listens = true, false
	if p.queue != nil {
		p.queue.undrive(p.dom)
		p.queue.unuse()
		p.queue = nil
	}
}

// passiveSink is a passive endpoint as it gets the requests of its listener.
type passiveSink PassiveEndpoint

func (p *passiveSink) Promise() bool { return p.queue.promise(1) == nil }

func (p *passiveSink) Deliver(r *node.Request) {
	to := (*PassiveEndpoint)(p)
	p.queue.deliver(Event{Kind: EventConnReq, Source: to, Context: p.attr.Context,
		Request: &ConnRequest{req: r, pep: to}, Param: r.Param})
}

// passives returns the open passive endpoints.
func (d *Domain) passives() (all []*PassiveEndpoint) {
	d.node.Numbers.Each(func(_ uint16, t node.Tenant) {
		if l, is := t.(*node.Listener); is {
			if p, is := l.To.(*passiveSink); is {
				all = append(all, (*PassiveEndpoint)(p))
			}
		}
	})
	return all
}

// ConnRequest is a request for a connection, which waits for an answer: an endpoint that
// was made for it accepts it, and PassiveEndpoint.Reject rejects it. The peer repeats it
// until then. It is the handle of fi_info.
type ConnRequest struct {
	req *node.Request
	pep *PassiveEndpoint
}

// Peer returns the address of the endpoint that asks; none for a request that no peer has
// made.
func (r *ConnRequest) Peer() string {
	if r == nil || r.req == nil {
		return wire.Addr{}.String()
	}
	return r.req.From.String()
}

// Info describes the endpoint to make for the request (info of fi_eq_cm_entry): its
// EndpointAttr are for Domain.NewEndpoint. That of a request which no peer has made is
// empty.
func (r *ConnRequest) Info() Info {
	if r == nil || r.pep == nil {
		return Info{}
	}
	o := r.pep.dom.offer()
	o = o.connected()
	i := (&Info{}).settle(&o)
	i.Dest, i.Handle = r.Peer(), r
	i.Endpoint.AuthKey = r.pep.attr.AuthKey.or(nil)
	return i
}

// Reject rejects a request, with at most CMDataSize bytes of the program's for the peer
// (fi_reject).
func (p *PassiveEndpoint) Reject(r *ConnRequest, param []byte) error {
	if err := p.there(); err != nil {
		return err
	}
	switch {
	case r == nil || r.pep != p:
		return errno.Refuse(ErrForeign, "xdpfab: passive endpoint %d: reject: want a request that it got",
			p.listener.Number)
	case len(param) > CMDataSize:
		return errno.Refuse(ErrCMData, "xdpfab: %d bytes for the peer: want at most %d", len(param), CMDataSize)
	}
	reply := wire.Connection{Set: true}
	reply.Fill(param)
	return r.answer(wire.HelloRejected, reply)
}

// answer answers the request, once.
func (r *ConnRequest) answer(status wire.HelloStatus, reply wire.Connection) error {
	p := r.pep
	if err := p.listener.Open(); err != nil {
		return err
	}
	x := share.Decision{Passive: p.listener.Number, Origin: r.req.Origin, Accepted: status == wire.HelloConnect,
		Endpoint: reply.Endpoint, Data: reply.Bytes()}
	if done, err := p.heard.Reply(x); err != nil {
		return fmt.Errorf("xdpfab: request of %v: %w", r.req.From, err)
	} else if done {
		return nil
	}
	return p.listener.Answer(r.req, status, reply)
}

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
	(*passiveSink)(p).Deliver(&node.Request{Origin: x.Origin, Node: wire.Addr(x.Node), From: wire.Addr(x.From),
		Param: x.Data, Status: wire.HelloWaiting})
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
	x := share.Ask{Endpoint: ep.number, Addr: share.Addr(to), Class: ep.attr.TrafficClass.mark(), Data: param}
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
