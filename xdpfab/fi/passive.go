// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
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
	p.heard = d.node.Dev.Hear(number, p.place)
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
	p.listener.Mu.Lock()
	defer p.listener.Mu.Unlock()
	switch {
	case p.listener.Closed:
		return p.listener.ErrClosed()
	case q == nil:
		return fmt.Errorf("xdpfab: passive endpoint %d: nothing to bind: %w", p.listener.Number, ErrNoEQ)
	case q.fabric != p.dom.fabric:
		return fmt.Errorf("xdpfab: passive endpoint %d: the event queue is of another fabric: want one of the same: %w",
			p.listener.Number, ErrForeign)
	case p.queue != nil:
		return fmt.Errorf("xdpfab: passive endpoint %d has an event queue: want one: %w", p.listener.Number, ErrBusy)
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
