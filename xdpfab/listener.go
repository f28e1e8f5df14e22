// SPDX-License-Identifier: Apache-2.0

package xdpfab

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

// listener is the tenant of a number that takes requests for connections, and no
// sessions. It remembers each request, so that it answers a repeated one as it did
// before.
type listener struct {
	n       *Node
	to      requestSink
	number  uint16
	key     *session.Key
	backlog int // the most requests that wait for an answer

	mu       sync.Mutex
	listens  bool
	closed   bool
	requests map[uint64]*request // by origin: those that wait, and those answered a while ago
	recent   list.List           // the same, the one heard last at the end
	waiting  int                 // requests that wait
	nodes    map[wire.Addr]int   // how many of them are of each node
	lookedAt int64               // when room last looked for requests that are gone
}

// requestSink gets the requests of a listener, on the engines' threads and with
// listener.mu held.
type requestSink interface {
	// promise reports whether there is a place for another request, and keeps it.
	promise() bool
	// deliver takes a request, for which a place is promised.
	deliver(r *request)
}

// request is a request for a connection. The peer repeats it until it is answered.
type request struct {
	origin uint64    // of the endpoint that asks
	node   wire.Addr // that it is on
	from   wire.Addr // its address
	param  []byte

	// Under listener.mu:
	status  wire.HelloStatus // HelloWaiting, or the answer; HelloNoEndpoint when it is forgotten
	reply   wire.Connection
	heardAt int64         // Node.now
	place   *list.Element // in listener.recent
}

func newListener(n *Node, to requestSink, number uint16, key *session.Key, backlog int) *listener {
	return &listener{n: n, to: to, number: number, key: key, backlog: backlog,
		requests: map[uint64]*request{}, nodes: map[wire.Addr]int{}}
}

func (l *listener) serves() bool { return true }

func (l *listener) admit(uint64) wire.HelloStatus { return wire.HelloNoEndpoint }

func (l *listener) sessionKey() *session.Key { return l.key }

func (l *listener) eventsTo() engine.Events { return nil }

func (l *listener) inflow(wire.Addr) session.Inflow { return nil }

func (l *listener) begin(*executor.Executor, int, int64, session.TargetParams) engine.Served {
	return nil
}

func (l *listener) mayReside() bool { return true }

func (l *listener) isTarget() bool { return true }

// requested repeats the answer to a request, or takes it in if it is new and there is
// room. Otherwise nothing is kept of it: the peer asks again.
func (l *listener) requested(asked *wire.Connection, from wire.Addr, now int64) (wire.HelloStatus, wire.Connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.listens {
		return wire.HelloNoEndpoint, wire.Connection{}
	}
	if r := l.requests[asked.Origin]; r != nil {
		r.heardAt = now
		l.recent.MoveToBack(r.place)
		return r.status, r.reply
	}
	l.expire(now)
	if !l.room(from, now) || !l.to.promise() {
		return wire.HelloWaiting, wire.Connection{}
	}
	r := &request{origin: asked.Origin, node: from, from: from, status: wire.HelloWaiting, heardAt: now}
	r.from.Endpoint = asked.Endpoint
	r.param = append(r.param, asked.Bytes()...)
	l.remember(r)
	l.to.deliver(r)
	return r.status, r.reply
}

// remember notes a request. l.mu is held.
func (l *listener) remember(r *request) {
	r.place = l.recent.PushBack(r)
	l.requests[r.origin] = r
	if r.status == wire.HelloWaiting {
		l.nodes[r.node]++
		l.waiting++
	}
}

// room reports whether another request of a node may wait. l.mu is held.
func (l *listener) room(from wire.Addr, now int64) bool {
	// Those that their peers have stopped repeating may be among them.
	if l.nodes[from] >= l.backlog-l.waiting && now-l.lookedAt >= int64(lookEvery) {
		l.lookedAt = now
		for _, r := range l.requests {
			if l.gone(r, now) {
				l.forget(r)
			}
		}
	}
	return l.nodes[from] < l.backlog-l.waiting && len(l.requests) < mostRequests
}

// lookEvery is the least time between two looks at all requests: strangers decide how
// many there are, and how often room asks.
const lookEvery = 50 * time.Millisecond

// gone reports whether the peer has stopped asking. l.mu is held.
func (l *listener) gone(r *request, now int64) bool {
	return r.status == wire.HelloWaiting && now-r.heardAt > int64(l.n.config.GiveUp)
}

// expire forgets requests that cannot come again: every cookie that came with them has
// expired. Until then a captured hello gets the answer that the peer got. l.mu is held.
func (l *listener) expire(now int64) {
	keep := 2*session.CookieLife + int64(l.n.config.GiveUp)
	for front := l.recent.Front(); front != nil; front = l.recent.Front() {
		r := front.Value.(*request)
		if now-r.heardAt < keep {
			return
		}
		l.forget(r)
	}
}

// forget removes a request. l.mu is held.
func (l *listener) forget(r *request) {
	l.settle(r)
	r.status = wire.HelloNoEndpoint
	l.recent.Remove(r.place)
	delete(l.requests, r.origin)
}

// settle removes a request from the count of those that wait. l.mu is held.
func (l *listener) settle(r *request) {
	if r.status != wire.HelloWaiting {
		return
	}
	l.waiting--
	if l.nodes[r.node]--; l.nodes[r.node] == 0 {
		delete(l.nodes, r.node)
	}
}

// find returns the request of an origin, or nil.
func (l *listener) find(origin uint64) *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.requests[origin]
}

// answer answers a request, once.
func (l *listener) answer(r *request, status wire.HelloStatus, reply wire.Connection) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return l.errClosed()
	case r.status == wire.HelloNoEndpoint || l.gone(r, l.n.now()):
		return fmt.Errorf("xdpfab: request of %v: %w: its peer has stopped asking", r.from, errno.PeerSilent)
	case r.status != wire.HelloWaiting:
		return fmt.Errorf("xdpfab: request of %v: answered already: %w", r.from, errno.Busy)
	}
	l.settle(r)
	r.status, r.reply = status, reply
	return nil
}

// end refuses all requests from now on.
func (l *listener) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.listens = true, false
}

// open returns an error when the listener has ended.
func (l *listener) open() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return l.errClosed()
	}
	return nil
}

func (l *listener) errClosed() error {
	return fmt.Errorf("xdpfab: passive endpoint %d: %w", l.number, errno.Closed)
}
