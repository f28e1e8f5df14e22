// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/share"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// PassiveEndpoint takes requests for connections (fi_passive_ep). It belongs to a domain,
// since only an interface that is open receives: bind an event queue, Listen, and make an
// endpoint of type EndpointMsg for each request that is to be accepted.
type PassiveEndpoint struct {
	dom    *Domain
	attr   PassiveAttr
	number uint16
	key    *session.Key

	mu       sync.Mutex
	queue    *EventQueue
	listens  bool
	closed   bool
	requests map[uint64]*ConnRequest // by origin: those that wait, and those answered a while ago
	recent   list.List               // the same, the one heard last at the end
	waiting  int                     // requests that wait
	nodes    map[wire.Addr]int       // how many of them are of each node
	lookedAt int64                   // when room last looked for requests that are gone

	heed  func(*ConnRequest) // takes requests in place of a queue, with mu held; nil unless it is a guest's
	heard requests           // of a domain that is a guest; see attached_passive.go
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

const (
	defaultBacklog = 64
	maxBacklog     = 4096
	// mostRequests is the most requests that are remembered, answered ones included.
	mostRequests = 16384
)

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
	if err := d.node.open(); err != nil {
		return nil, err
	}
	key, err := d.node.session(attr.AuthKey)
	if err != nil {
		return nil, fmt.Errorf("xdpfab: passive endpoint: %w", err)
	}
	number, err := d.pickPassive(&attr)
	if err != nil {
		return nil, err
	}
	attr.Number = int(number)
	p := newPassive(d, attr, number, key)
	p.heard = d.node.dev.hear(number, p.place)
	d.node.numbers.put(number, p)
	d.children[p] = fmt.Sprintf("passive endpoint %d", number)
	return p, nil
}

// withDefaults checks the attributes and fills in the defaults.
func (a PassiveAttr) withDefaults() (PassiveAttr, error) {
	if a.Backlog < 0 || a.Backlog > maxBacklog {
		return a, fmt.Errorf("xdpfab: passive endpoint with a backlog of %d: want 1..%d, or 0 for %d: %w", a.Backlog, maxBacklog, defaultBacklog, ErrCount)
	}
	if a.Backlog == 0 {
		a.Backlog = defaultBacklog
	}
	return a, a.AuthKey.check("passive endpoint")
}

func newPassive(d *Domain, attr PassiveAttr, number uint16, key *session.Key) *PassiveEndpoint {
	return &PassiveEndpoint{dom: d, attr: attr, number: number, key: key, requests: map[uint64]*ConnRequest{}, nodes: map[wire.Addr]int{}}
}

// pickPassive checks or chooses the number of a passive endpoint, which the host of a
// domain that has one makes. d.mu is held.
func (d *Domain) pickPassive(attr *PassiveAttr) (uint16, error) {
	number, given, err := d.node.dev.passive(attr.toHost())
	switch {
	case err != nil:
		return 0, fmt.Errorf("xdpfab: passive endpoint: %w", err)
	case given:
		return number, nil
	}
	return d.node.numbers.take(attr.Number, false, nil)
}

// toHost describes a passive endpoint for a host.
func (a *PassiveAttr) toHost() share.Passive {
	return share.Passive{Number: a.Number, Backlog: a.Backlog, Key: a.AuthKey}
}

// Attr returns the attributes in force.
func (p *PassiveEndpoint) Attr() PassiveAttr { return p.attr }

// Name returns the address of the passive endpoint on its Ethernet segment, for
// Endpoint.Connect (fi_getname).
func (p *PassiveEndpoint) Name() string { return p.dom.Name(p.number) }

// Bind binds the event queue that gets the requests (fi_pep_bind).
func (p *PassiveEndpoint) Bind(q *EventQueue) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return p.errClosed()
	case q == nil:
		return fmt.Errorf("xdpfab: passive endpoint %d: nothing to bind: %w", p.number, ErrNoEQ)
	case q.fabric != p.dom.fabric:
		return fmt.Errorf("xdpfab: passive endpoint %d: the event queue is of another fabric: want one of the same: %w", p.number, ErrForeign)
	case p.queue != nil:
		return fmt.Errorf("xdpfab: passive endpoint %d has an event queue: want one: %w", p.number, ErrBusy)
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
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return p.errClosed()
	case p.queue == nil:
		return fmt.Errorf("xdpfab: passive endpoint %d: %w: bind one first", p.number, ErrNoEQ)
	}
	p.listens = true
	return p.heard.listen()
}

func (p *PassiveEndpoint) errClosed() error {
	return fmt.Errorf("xdpfab: passive endpoint %d: %w", p.number, ErrClosed)
}

// Close takes no requests any more. Those that wait are refused, and so are peers that
// have not heard yet that they were accepted: close it after their EventConnected.
// Closing twice is no error.
func (p *PassiveEndpoint) Close() error {
	defer p.dom.stay()()
	p.shut()
	p.heard.end()
	if p.dom.node.numbers.drop(p.number, p) {
		p.dom.node.dev.giveBack(p.number, 1)
	}
	p.dom.forget(p)
	return nil
}

func (p *PassiveEndpoint) shut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed, p.listens = true, false
	if p.queue != nil {
		p.queue.undrive(p.dom)
		p.queue.unuse()
		p.queue = nil
	}
}

// requested repeats the answer to a request, or takes it in if it is new and there is
// room. Otherwise nothing is kept of it: the peer asks again.
func (p *PassiveEndpoint) requested(asked *wire.Connection, from wire.Addr, now int64) (wire.HelloStatus, wire.Connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.listens {
		return wire.HelloNoEndpoint, wire.Connection{}
	}
	if r := p.requests[asked.Origin]; r != nil {
		r.heardAt = now
		p.recent.MoveToBack(r.place)
		return r.status, r.reply
	}
	p.expire(now)
	if !p.room(from, now) || p.heed == nil && p.queue.promise(1) != nil {
		return wire.HelloWaiting, wire.Connection{}
	}
	r := &ConnRequest{pep: p, origin: asked.Origin, node: from, from: from, status: wire.HelloWaiting, heardAt: now}
	r.from.Endpoint = asked.Endpoint
	r.param = append(r.param, asked.Bytes()...)
	p.remember(r)
	if p.heed != nil {
		p.heed(r)
	} else {
		p.deliver(r)
	}
	return r.status, r.reply
}

// remember notes a request. p.mu is held.
func (p *PassiveEndpoint) remember(r *ConnRequest) {
	r.place = p.recent.PushBack(r)
	p.requests[r.origin] = r
	if r.status == wire.HelloWaiting {
		p.nodes[r.node]++
		p.waiting++
	}
}

// deliver tells the program of a request. p.mu is held, and a place is promised.
func (p *PassiveEndpoint) deliver(r *ConnRequest) {
	p.queue.deliver(Event{Kind: EventConnReq, Source: p, Context: p.attr.Context, Request: r, Param: r.param})
}

// room reports whether another request of a node may wait. p.mu is held.
func (p *PassiveEndpoint) room(from wire.Addr, now int64) bool {
	if p.nodes[from] >= p.attr.Backlog-p.waiting && now-p.lookedAt >= int64(lookEvery) { // perhaps there are some that nobody repeats
		p.lookedAt = now
		for _, r := range p.requests {
			if r.gone(now) {
				p.forget(r)
			}
		}
	}
	return p.nodes[from] < p.attr.Backlog-p.waiting && len(p.requests) < mostRequests
}

// lookEvery is the least time between two looks at all requests: strangers decide how
// many there are, and how often room asks.
const lookEvery = 50 * time.Millisecond

// expire forgets requests that cannot come again: every cookie that came with them has
// expired. Until then a captured hello gets the answer that the peer got. p.mu is held.
func (p *PassiveEndpoint) expire(now int64) {
	keep := 2*session.CookieLife + int64(p.dom.attr.GiveUp)
	for front := p.recent.Front(); front != nil; front = p.recent.Front() {
		r := front.Value.(*ConnRequest)
		if now-r.heardAt < keep {
			return
		}
		p.forget(r)
	}
}

// forget removes a request. p.mu is held.
func (p *PassiveEndpoint) forget(r *ConnRequest) {
	p.settle(r)
	r.status = wire.HelloNoEndpoint
	p.recent.Remove(r.place)
	delete(p.requests, r.origin)
}

// settle counts a request no more among those that wait. p.mu is held.
func (p *PassiveEndpoint) settle(r *ConnRequest) {
	if r.status != wire.HelloWaiting {
		return
	}
	p.waiting--
	if p.nodes[r.node]--; p.nodes[r.node] == 0 {
		delete(p.nodes, r.node)
	}
}
