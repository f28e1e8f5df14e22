// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// tenant has the number of an endpoint. The engines ask it about the sessions that peers
// open to that number, on their own threads.
type tenant interface {
	// serves reports whether it accepts sessions, or requests for connections. A tenant
	// that does not is asked nothing else about them.
	serves() bool
	// admit answers the hello of an origin.
	admit(origin uint64) wire.HelloStatus
	// requested answers a request for a connection.
	requested(asked *wire.Connection, from wire.Addr, now int64) (wire.HelloStatus, wire.Connection)
	// sessionKey is the authorization key that peers must have, nil for none.
	sessionKey() *session.Key
	// eventsTo returns where the events of a session go, nil for none.
	eventsTo() engine.Events
	// inflow takes the messages of a session; nil if it receives none.
	inflow(from wire.Addr) session.Inflow
	// begin begins the target half of a session. It returns nil if the session may become
	// resident, as it may if there is no tenant yet.
	begin(x *executor.Executor, queue int, now int64, p session.TargetParams) engine.Served
	// mayReside reports whether begin would return nil.
	mayReside() bool
	// isTarget reports whether it neither posts nor receives messages, at present. It is
	// asked whether it serves or not, and by any goroutine.
	isTarget() bool
}

// numbers says who has which endpoint number. Any thread may look a tenant up.
type numbers struct {
	mu     sync.Mutex // of those that change something; no other lock is taken under it
	blocks map[uint16]*block
	pages  [256]atomic.Pointer[numberPage]
}

type numberPage [256]atomic.Pointer[holder]

// anyNumber stands for a number that the node chooses. It is the value of AnyNumber.
const anyNumber = -1

// holder is a number that is taken. The tenant is nil until it moves in.
type holder struct{ tenant }

// block is numbers one after the other, those of a scalable endpoint.
type block struct{ first, length int }

// at returns the tenant of a number, or nil.
func (n *numbers) at(number uint16) tenant {
	if p := n.pages[number>>8].Load(); p != nil {
		if h := p[number&0xff].Load(); h != nil {
			return h.tenant
		}
	}
	return nil
}

// serving returns the tenant of a number if it serves, or nil.
func (n *numbers) serving(number uint16) tenant {
	if t := n.at(number); t != nil && t.serves() {
		return t
	}
	return nil
}

// each calls f for every tenant.
func (n *numbers) each(f func(number uint16, t tenant)) {
	for i := range n.pages {
		p := n.pages[i].Load()
		if p == nil {
			continue
		}
		for j := range p {
			if h := p[j].Load(); h != nil && h.tenant != nil {
				f(uint16(i<<8|j), h.tenant)
			}
		}
	}
}

// put gives a number a tenant, in place of what it had.
func (n *numbers) put(number uint16, t tenant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.set(number, &holder{t})
}

// set stores a holder, or nil for none. n.mu is held.
func (n *numbers) set(number uint16, h *holder) {
	p := n.pages[number>>8].Load()
	if p == nil {
		p = new(numberPage)
		n.pages[number>>8].Store(p)
	}
	p[number&0xff].Store(h)
}

// drop frees a number if it is the tenant's, and reports whether it was. A nil tenant
// stands for a number that was taken and has none.
func (n *numbers) drop(number uint16, t tenant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pages[number>>8].Load()
	if p == nil {
		return false
	}
	if h := p[number&0xff].Load(); h == nil || h.tenant != t {
		return false
	}
	p[number&0xff].Store(nil)
	return true
}

// take checks or chooses a number, and keeps it until put or drop. AnyNumber is the
// lowest free one, or the highest. of is the block that the number must be in; nil for
// none.
func (n *numbers) take(number int, highest bool, of *block) (uint16, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if number != anyNumber {
		if number < 0 || number > 0xffff {
			return 0, fmt.Errorf("xdpfab: endpoint number %d: want 0..65535 or AnyNumber", number)
		}
		if n.taken(uint16(number)) || n.blocks[uint16(number)] != of {
			return 0, fmt.Errorf("xdpfab: endpoint number %d is taken: choose another one, or AnyNumber: %w", number, errno.Busy)
		}
		n.set(uint16(number), &holder{})
		return uint16(number), nil
	}
	for i := range 0xffff { // 0 is only given to callers that ask for it
		at := i + 1
		if highest {
			at = 0xffff - i
		}
		if n.free(at, 1) {
			n.set(uint16(at), &holder{})
			return uint16(at), nil
		}
	}
	return 0, fmt.Errorf("xdpfab: all 65535 endpoint numbers are in use: %w", errno.Busy)
}

// someNumber returns a free number at random, or AnyNumber. A guest that comes from a
// former host wants the numbers that it had there, which others should not have got in
// the meantime.
func (n *numbers) someNumber() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range 16 {
		if at := 1 + rand.IntN(0xffff); n.free(at, 1) {
			return at
		}
	}
	return anyNumber
}

// reserve checks or chooses as many numbers, one after the other, as a block. Each is
// still to be taken.
func (n *numbers) reserve(number, length int) (*block, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.find(number, length)
	if err != nil {
		return nil, err
	}
	b := &block{at, length}
	n.enter(b)
	return b, nil
}

// enter notes a block. n.mu is held.
func (n *numbers) enter(b *block) {
	if n.blocks == nil {
		n.blocks = map[uint16]*block{}
	}
	for i := range b.length {
		n.blocks[uint16(b.first+i)] = b
	}
}

// adopt notes a block whose numbers another process has chosen.
func (n *numbers) adopt(first, length int) *block {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := &block{first, length}
	n.enter(b)
	return b
}

// unreserve gives the numbers of a block back.
func (n *numbers) unreserve(b *block) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range b.length {
		delete(n.blocks, uint16(b.first+i))
	}
}

// blockOf returns the block that a number is in, or nil.
func (n *numbers) blockOf(number uint16) *block {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.blocks[number]
}

// reserved returns all blocks.
func (n *numbers) reserved() (all []*block) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for number, b := range n.blocks {
		if int(number) == b.first {
			all = append(all, b)
		}
	}
	return all
}

// takeMany checks or chooses numbers one after the other, and takes each.
func (n *numbers) takeMany(number, length int) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.find(number, length)
	for i := range length {
		if err == nil {
			n.set(uint16(at+i), &holder{})
		}
	}
	return at, err
}

// find checks or chooses as many numbers, one after the other. n.mu is held.
func (n *numbers) find(number, length int) (int, error) {
	first, last := number, number
	if number == anyNumber {
		first, last = 1, 0x10000-length
	}
	if first < 0 || length < 1 || first > 0x10000-length {
		return 0, fmt.Errorf("xdpfab: scalable endpoint of %d numbers from %d on: want them in 0..65535, or AnyNumber", length, first)
	}
	for at := first; at <= last; at++ {
		if n.free(at, length) {
			return at, nil
		}
	}
	return 0, fmt.Errorf("xdpfab: scalable endpoint: no %d free numbers one after the other: choose others, or AnyNumber: %w", length, errno.Busy)
}

// free reports whether no endpoint has any of the numbers. n.mu is held.
func (n *numbers) free(number, length int) bool {
	for at := number; at < number+length; at++ {
		if n.taken(uint16(at)) || n.blocks[uint16(at)] != nil {
			return false
		}
	}
	return true
}

// taken reports whether a number has a holder. n.mu is held.
func (n *numbers) taken(number uint16) bool {
	p := n.pages[number>>8].Load()
	return p != nil && p[number&0xff].Load() != nil
}

// accept answers a hello. It runs on the engines' threads, as what follows.
func (n *Node) accept(endpoint uint16, origin uint64) wire.HelloStatus {
	if t := n.numbers.serving(endpoint); t != nil {
		return t.admit(origin)
	}
	return wire.HelloNoEndpoint
}

// requested answers a request for a connection.
func (n *Node) requested(endpoint uint16, asked *wire.Connection, from wire.Addr) (wire.HelloStatus, wire.Connection) {
	if t := n.numbers.serving(endpoint); t != nil {
		return t.requested(asked, from, n.now())
	}
	return wire.HelloNoEndpoint, wire.Connection{}
}

// keyOf returns the key of an endpoint that accepts sessions.
func (n *Node) keyOf(endpoint uint16) (*session.Key, bool) {
	if t := n.numbers.serving(endpoint); t != nil {
		return t.sessionKey(), true
	}
	return nil, false
}

// eventsOf returns where the events of an endpoint go, or nil if no queue is bound for
// them.
func (n *Node) eventsOf(endpoint uint16) engine.Events {
	if t := n.numbers.serving(endpoint); t != nil {
		return t.eventsTo()
	}
	return nil
}

// inflowOf returns what takes the messages of a session with an endpoint, or nil.
func (n *Node) inflowOf(endpoint uint16, from wire.Addr) session.Inflow {
	if t := n.numbers.serving(endpoint); t != nil {
		return t.inflow(from)
	}
	return nil
}

// serveSession begins the target half of a session. A number without a tenant gets one
// that may become resident, too: a process that takes another's place has the sessions
// before it makes the endpoints.
func (n *Node) serveSession(x *executor.Executor, queue int, now int64, p session.TargetParams) engine.Served {
	if t := n.numbers.serving(p.Endpoint); t != nil {
		if s := t.begin(x, queue, now, p); s != nil {
			return s
		}
	}
	return n.residents.movable(x, queue, now, p)
}

// abroad reports whether an endpoint is not one that this domain serves. It is called on
// the engine's thread.
func (n *Node) abroad(endpoint uint16) (queue int, is bool) {
	return engine.AnyQueue, n.numbers.serving(endpoint) == nil
}

// session returns the key in the form that sessions use, nil for none.
func (n *Node) session(k []byte) (*session.Key, error) {
	return sessionKey(n.table, k)
}

func sessionKey(t *mr.Table, k []byte) (*session.Key, error) {
	n, err := t.AuthKey(k)
	if err != nil || n == 0 {
		return nil, err
	}
	return session.NewKey(k, uint32(n)), nil
}
