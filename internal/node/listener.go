// SPDX-License-Identifier: Apache-2.0

package node

import (
	"container/list"
	"fmt"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// mostRequests is the most requests that a listener remembers, answered ones included.
const mostRequests = 16384

// Listener is the tenant of a number that takes requests for connections, and no
// sessions. It remembers each request, so that it answers a repeated one as it did
// before.
type Listener struct {
	N       *Node
	To      requestSink
	Number  uint16
	key     *session.Key
	Backlog int // the most requests that wait for an answer

	Mu       sync.Mutex
	Listens  bool
	Closed   bool
	requests map[uint64]*Request // by origin: those that wait, and those answered a while ago
	Recent   list.List           // the same, the one heard last at the end
	waiting  int                 // requests that wait
	nodes    map[wire.Addr]int   // how many of them are of each node
	lookedAt int64               // when room last looked for requests that are gone
}

// requestSink gets the requests of a listener, on the engines' threads and with
// listener.mu held.
type requestSink interface {
	// Promise reports whether there is a place for another request, and keeps it.
	Promise() bool
	// Deliver takes a request, for which a place is promised.
	Deliver(r *Request)
}

// Request is a request for a connection. The peer repeats it until it is answered.
type Request struct {
	Origin uint64    // of the endpoint that asks
	Node   wire.Addr // that it is on
	From   wire.Addr // its address
	Param  []byte

	// Under listener.mu:
	Status  wire.HelloStatus // HelloWaiting, or the answer; HelloNoEndpoint when it is forgotten
	Reply   wire.Connection
	HeardAt int64         // Node.now
	place   *list.Element // in listener.recent
}

// NewListener makes the tenant of a number, which is still to be put there. backlog
// bounds the requests that wait for an answer.
func NewListener(n *Node, to requestSink, number uint16, key *session.Key, backlog int) *Listener {
	return &Listener{N: n, To: to, Number: number, key: key, Backlog: backlog,
		requests: map[uint64]*Request{}, nodes: map[wire.Addr]int{}}
}

// Serves implements Tenant.
func (l *Listener) Serves() bool { return true }

// Admit implements Tenant.
func (l *Listener) Admit(uint64) wire.HelloStatus { return wire.HelloNoEndpoint }

// SessionKey implements Tenant.
func (l *Listener) SessionKey() *session.Key { return l.key }

// EventsTo implements Tenant.
func (l *Listener) EventsTo() engine.Events { return nil }

// Inflow implements Tenant.
func (l *Listener) Inflow(wire.Addr) session.Inflow { return nil }

// Begin implements Tenant.
func (l *Listener) Begin(*executor.Executor, int, int64, session.TargetParams) engine.Served {
	return nil
}

// MayReside implements Tenant.
func (l *Listener) MayReside() bool { return true }

// IsTarget implements Tenant.
func (l *Listener) IsTarget() bool { return true }

// Requested repeats the answer to a request, or takes it in if it is new and there is
// room. Otherwise nothing is kept of it: the peer asks again.
func (l *Listener) Requested(asked *wire.Connection, from wire.Addr, now int64) (wire.HelloStatus, wire.Connection) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if !l.Listens {
		return wire.HelloNoEndpoint, wire.Connection{}
	}
	if r := l.requests[asked.Origin]; r != nil {
		r.HeardAt = now
		l.Recent.MoveToBack(r.place)
		return r.Status, r.Reply
	}
	l.expire(now)
	if !l.room(from, now) || !l.To.Promise() {
		return wire.HelloWaiting, wire.Connection{}
	}
	r := &Request{Origin: asked.Origin, Node: from, From: from, Status: wire.HelloWaiting, HeardAt: now}
	r.From.Endpoint = asked.Endpoint
	r.Param = append(r.Param, asked.Bytes()...)
	l.Remember(r)
	l.To.Deliver(r)
	return r.Status, r.Reply
}

// Remember records a request. l.mu is held.
func (l *Listener) Remember(r *Request) {
	r.place = l.Recent.PushBack(r)
	l.requests[r.Origin] = r
	if r.Status == wire.HelloWaiting {
		l.nodes[r.Node]++
		l.waiting++
	}
}

// room reports whether another request of a node may wait. l.mu is held.
func (l *Listener) room(from wire.Addr, now int64) bool {
	// Those that their peers have stopped repeating may be among them.
	if l.nodes[from] >= l.Backlog-l.waiting && now-l.lookedAt >= int64(lookEvery) {
		l.lookedAt = now
		for _, r := range l.requests {
			if l.gone(r, now) {
				l.remove(r)
			}
		}
	}
	return l.nodes[from] < l.Backlog-l.waiting && len(l.requests) < mostRequests
}

// lookEvery is the least time between two looks at all requests: strangers decide how
// many there are, and how often room asks.
const lookEvery = 50 * time.Millisecond

// gone reports whether the peer has stopped asking. l.mu is held.
func (l *Listener) gone(r *Request, now int64) bool {
	return r.Status == wire.HelloWaiting && now-r.HeardAt > int64(l.N.Config.GiveUp)
}

// expire forgets requests that cannot come again: every cookie that came with them has
// expired. Until then a captured hello gets the answer that the peer got. l.mu is held.
func (l *Listener) expire(now int64) {
	keep := 2*session.CookieLife + int64(l.N.Config.GiveUp)
	for front := l.Recent.Front(); front != nil; front = l.Recent.Front() {
		r := front.Value.(*Request)
		if now-r.HeardAt < keep {
			return
		}
		l.remove(r)
	}
}

// remove removes a request. l.mu is held.
func (l *Listener) remove(r *Request) {
	l.settle(r)
	r.Status = wire.HelloNoEndpoint
	l.Recent.Remove(r.place)
	delete(l.requests, r.Origin)
}

// settle removes a request from the count of those that wait. l.mu is held.
func (l *Listener) settle(r *Request) {
	if r.Status != wire.HelloWaiting {
		return
	}
	l.waiting--
	if l.nodes[r.Node]--; l.nodes[r.Node] == 0 {
		delete(l.nodes, r.Node)
	}
}

// Find returns the request of an origin, or nil.
func (l *Listener) Find(origin uint64) *Request {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.requests[origin]
}

// Answer answers a request, once.
func (l *Listener) Answer(r *Request, status wire.HelloStatus, reply wire.Connection) error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	switch {
	case l.Closed:
		return l.ErrClosed()
	case r.Status == wire.HelloNoEndpoint || l.gone(r, l.N.Now()):
		return fmt.Errorf("xdpfab: request of %v: %w: its peer has stopped asking", r.From, errno.PeerSilent)
	case r.Status != wire.HelloWaiting:
		return fmt.Errorf("xdpfab: request of %v: answered already: %w", r.From, errno.Busy)
	}
	l.settle(r)
	r.Status, r.Reply = status, reply
	return nil
}

// End refuses all requests from now on.
func (l *Listener) End() {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Closed, l.Listens = true, false
}

// Open returns an error when the listener has ended.
func (l *Listener) Open() error {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Closed {
		return l.ErrClosed()
	}
	return nil
}

// ErrClosed is the error of a listener that ended.
func (l *Listener) ErrClosed() error {
	return fmt.Errorf("xdpfab: passive endpoint %d: %w", l.Number, l.N.End.Closed("make another one"))
}

// The backlog of listeners.
const (
	DefaultBacklog = 64
	MaxBacklog     = 4096
)

// Backlog checks the backlog of a listener, and returns the one in force.
func Backlog(wanted int) (int, error) {
	if wanted < 0 || wanted > MaxBacklog {
		return 0, errno.Refuse(errno.Count,
			"xdpfab: passive endpoint with a backlog of %d: want 1..%d, or 0 for %d", wanted,
			MaxBacklog, DefaultBacklog)
	}
	if wanted == 0 {
		wanted = DefaultBacklog
	}
	return wanted, nil
}
