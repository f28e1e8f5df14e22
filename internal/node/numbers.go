// SPDX-License-Identifier: Apache-2.0

package node

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
)

// Tenant has the number of an endpoint. The engines ask it about the sessions that peers
// open to that number, on their own threads.
type Tenant interface {
	// Serves reports whether it accepts sessions, or requests for connections. A tenant
	// that does not is asked nothing else about them.
	Serves() bool
	// Admit answers the hello of an origin.
	Admit(origin uint64) wire.HelloStatus
	// Requested answers a request for a connection.
	Requested(asked *wire.Connection, from wire.Addr, now int64) (wire.HelloStatus, wire.Connection)
	// SessionKey is the authorization key that peers must have, nil for none.
	SessionKey() *session.Key
	// EventsTo returns where the events of a session go, nil for none.
	EventsTo() engine.Events
	// Inflow takes the messages of a session; nil if it receives none.
	Inflow(from wire.Addr) session.Inflow
	// Begin begins the target half of a session. It returns nil if the session may become
	// resident, as it may if there is no tenant yet.
	Begin(x *executor.Executor, queue int, now int64, p session.TargetParams) engine.Served
	// MayReside reports whether begin would return nil.
	MayReside() bool
	// IsTarget reports whether it neither posts nor receives messages, at present. It is
	// asked whether it serves or not, and by any goroutine.
	IsTarget() bool
}

// Numbers describes who has which endpoint number. Any thread may look a tenant up.
type Numbers struct {
	mu     sync.Mutex // of those that change something; no other lock is taken under it
	blocks map[uint16]*Block
	pages  [256]atomic.Pointer[numberPage]
}

type numberPage [256]atomic.Pointer[holder]

// AnyNumber stands for a number that the node chooses.
const AnyNumber = -1

// MaxBlock is the most numbers of a scalable endpoint for one direction.
const MaxBlock = 128

// holder is a number that is taken. The tenant is nil until it moves in.
type holder struct{ Tenant }

// Block is numbers one after the other, those of a scalable endpoint.
type Block struct{ First, Length int }

// At returns the tenant of a number, or nil.
func (n *Numbers) At(number uint16) Tenant {
	if p := n.pages[number>>8].Load(); p != nil {
		if h := p[number&0xff].Load(); h != nil {
			return h.Tenant
		}
	}
	return nil
}

// Serving returns the tenant of a number if it serves, or nil.
func (n *Numbers) Serving(number uint16) Tenant {
	if t := n.At(number); t != nil && t.Serves() {
		return t
	}
	return nil
}

// Each calls f for every tenant.
func (n *Numbers) Each(f func(number uint16, t Tenant)) {
	for i := range n.pages {
		p := n.pages[i].Load()
		if p == nil {
			continue
		}
		for j := range p {
			if h := p[j].Load(); h != nil && h.Tenant != nil {
				f(uint16(i<<8|j), h.Tenant)
			}
		}
	}
}

// Put gives a number a tenant, in place of what it had.
func (n *Numbers) Put(number uint16, t Tenant) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.set(number, &holder{t})
}

// set stores a holder, or nil for none. n.mu is held.
func (n *Numbers) set(number uint16, h *holder) {
	p := n.pages[number>>8].Load()
	if p == nil {
		p = new(numberPage)
		n.pages[number>>8].Store(p)
	}
	p[number&0xff].Store(h)
}

// Drop frees a number if it is the tenant's, and reports whether it was. A nil tenant
// stands for a number that was taken and has none.
func (n *Numbers) Drop(number uint16, t Tenant) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pages[number>>8].Load()
	if p == nil {
		return false
	}
	if h := p[number&0xff].Load(); h == nil || h.Tenant != t {
		return false
	}
	p[number&0xff].Store(nil)
	return true
}

// Take checks or chooses a number, and keeps it until put or drop. AnyNumber is the
// lowest free one, or the highest. of is the block that the number must be in; nil for
// none.
func (n *Numbers) Take(number int, highest bool, of *Block) (uint16, error) {
	if number != AnyNumber {
		if err := CheckNumber(number); err != nil {
			return 0, err
		}
		if !n.takeOne(uint16(number), of) {
			return 0, errno.Refuse(errno.Busy,
				"xdpfab: endpoint number %d is taken%s: choose another one, or AnyNumber", number, n.by(uint16(number)))
		}
		return uint16(number), nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
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

// takeOne keeps a number, unless it is taken, or not in the block that it must be in.
func (n *Numbers) takeOne(number uint16, of *Block) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.taken(number) || n.blocks[number] != of {
		return false
	}
	n.set(number, &holder{})
	return true
}

// by says who has a number that is taken, if the tenant has words for itself.
func (n *Numbers) by(number uint16) string {
	if t, is := n.At(number).(fmt.Stringer); is {
		return " by " + t.String()
	}
	return ""
}

// CheckNumber refuses what is no endpoint number, and not AnyNumber.
func CheckNumber(number int) error {
	if number != AnyNumber && (number < 0 || number > 0xffff) {
		return errno.Refuse(errno.Argument, "xdpfab: endpoint number %d: want 0..65535 or AnyNumber", number)
	}
	return nil
}

// SomeNumber returns a free number at random, or AnyNumber. A guest that comes from a
// former host wants the numbers that it had there, which others should not have got in
// the meantime.
func (n *Numbers) SomeNumber() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	for range 16 {
		if at := 1 + rand.IntN(0xffff); n.free(at, 1) {
			return at
		}
	}
	return AnyNumber
}

// Reserve checks or chooses as many numbers, one after the other, as a block. Each is
// still to be taken.
func (n *Numbers) Reserve(number, length int) (*Block, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, err := n.find(number, length)
	if err != nil {
		return nil, err
	}
	b := &Block{at, length}
	n.enter(b)
	return b, nil
}

// enter records a block. n.mu is held.
func (n *Numbers) enter(b *Block) {
	if n.blocks == nil {
		n.blocks = map[uint16]*Block{}
	}
	for i := range b.Length {
		n.blocks[uint16(b.First+i)] = b
	}
}

// Adopt records a block whose numbers another process has chosen.
func (n *Numbers) Adopt(first, length int) *Block {
	n.mu.Lock()
	defer n.mu.Unlock()
	b := &Block{first, length}
	n.enter(b)
	return b
}

// Unreserve gives the numbers of a block back.
func (n *Numbers) Unreserve(b *Block) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range b.Length {
		delete(n.blocks, uint16(b.First+i))
	}
}

// BlockOf returns the block that a number is in, or nil.
func (n *Numbers) BlockOf(number uint16) *Block {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.blocks[number]
}

// Reserved returns all blocks.
func (n *Numbers) Reserved() (all []*Block) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for number, b := range n.blocks {
		if int(number) == b.First {
			all = append(all, b)
		}
	}
	return all
}

// TakeMany checks or chooses numbers one after the other, and takes each.
func (n *Numbers) TakeMany(number, length int) (int, error) {
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
func (n *Numbers) find(number, length int) (int, error) {
	first, last := number, number
	if number == AnyNumber {
		first, last = 1, 0x10000-length
	}
	if first < 0 || length < 1 || first > 0x10000-length {
		return 0, fmt.Errorf("xdpfab: scalable endpoint of %d numbers from %d on: want them in 0..65535, or AnyNumber",
			length, first)
	}
	for at := first; at <= last; at++ {
		if n.free(at, length) {
			return at, nil
		}
	}
	return 0,
		errno.Refuse(errno.Busy,
			"xdpfab: scalable endpoint: no %d free numbers one after the other: choose others, or AnyNumber",
			length)
}

// free reports whether no endpoint has any of the numbers. n.mu is held.
func (n *Numbers) free(number, length int) bool {
	for at := number; at < number+length; at++ {
		if n.taken(uint16(at)) || n.blocks[uint16(at)] != nil {
			return false
		}
	}
	return true
}

// taken reports whether a number has a holder. n.mu is held.
func (n *Numbers) taken(number uint16) bool {
	p := n.pages[number>>8].Load()
	return p != nil && p[number&0xff].Load() != nil
}

// accept answers a hello. It runs on the engines' threads, as what follows.
func (n *Node) accept(endpoint uint16, origin uint64) wire.HelloStatus {
	if t := n.Numbers.Serving(endpoint); t != nil {
		return t.Admit(origin)
	}
	return n.unserved()
}

// requested answers a request for a connection.
func (n *Node) requested(endpoint uint16, asked *wire.Connection, from wire.Addr) (wire.HelloStatus, wire.Connection) {
	if t := n.Numbers.Serving(endpoint); t != nil {
		return t.Requested(asked, from, n.Now())
	}
	return n.unserved(), wire.Connection{}
}

// keysOf returns the keys of an endpoint that accepts sessions.
func (n *Node) keysOf(endpoint uint16) (session.Keys, bool) {
	switch t := n.Numbers.Serving(endpoint).(type) {
	case nil:
		return nil, false
	case target:
		return t.keys(), true
	default:
		return session.Keys{t.SessionKey()}, true
	}
}

// EventsOf returns where the events of an endpoint go, or nil if no queue is bound for
// them.
func (n *Node) EventsOf(endpoint uint16) engine.Events {
	if t := n.Numbers.Serving(endpoint); t != nil {
		return t.EventsTo()
	}
	return nil
}

// inflowOf returns what takes the messages of a session with an endpoint, or nil.
func (n *Node) inflowOf(endpoint uint16, from wire.Addr) session.Inflow {
	if t := n.Numbers.Serving(endpoint); t != nil {
		return t.Inflow(from)
	}
	return nil
}

// attender is a tenant that may have its sessions' operations executed by the program
// that has the memory.
type attender interface {
	Attendant(from wire.Addr, origin uint64) session.Attendant
}

// attendantOf returns what hands over operations of a session with an endpoint, or nil.
func (n *Node) attendantOf(endpoint uint16, from wire.Addr, origin uint64) session.Attendant {
	if t, is := n.Numbers.Serving(endpoint).(attender); is {
		return t.Attendant(from, origin)
	}
	return nil
}

// answerer is a tenant that may have a function answer its sessions' calls.
type answerer interface {
	Callee(from wire.Addr, party session.Party, ended func()) session.Callee
}

// calleeOf returns what answers the calls of a session with an endpoint, or nil.
func (n *Node) calleeOf(endpoint uint16, from wire.Addr, party session.Party, ended func()) session.Callee {
	if t, is := n.Numbers.Serving(endpoint).(answerer); is {
		return t.Callee(from, party, ended)
	}
	return nil
}

// serveSession begins the target half of a session. A number without a tenant gets one
// that may become resident, too: a process that takes another's place has the sessions
// before it makes the endpoints.
func (n *Node) serveSession(x *executor.Executor, queue int, now int64, p session.TargetParams) engine.Served {
	if t := n.Numbers.Serving(p.Endpoint); t != nil {
		if s := t.Begin(x, queue, now, p); s != nil {
			return s
		}
	}
	return n.Residents.Migratable(x, queue, now, p)
}
