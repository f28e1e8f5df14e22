// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"container/list"
	"sync"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// pairs holds what the targets of a group remember of each pair of endpoints: an origin
// of another node and an endpoint of this one. It ensures that nothing of an old session
// runs late: a session is accepted only if it is later than every one before it, and from
// that moment the one before it executes nothing, whatever queue it is on and whatever
// address its frames come from.
//
// A pair outlives its sessions for as long as their cookies are good, so that a captured
// hello cannot begin a session again. When there are too many pairs, that is not certain,
// but such a session does no harm beyond taking a place: it has an epoch of its own, to
// which no captured frame belongs. Pairs are looked at only when sessions begin and end,
// so a lock does not hurt.
type pairs struct {
	mu   sync.Mutex
	all  map[pairKey]*pair
	idle list.List // pairs without sessions, in the order in which they lost the last one
	door *session.Listener

	spread []*Engine // new pairs are given to these in turn; nil: to the asking engine
	next   int       // of spread
}

// mostIdle is the most pairs without sessions that are remembered.
const mostIdle = 16384

// cookiesDie is the time after a session's end, in nanoseconds, at which every cookie
// that was given before the end has expired.
const cookiesDie = int64(2 * session.CookieLife)

type pairKey struct {
	origin   uint64
	endpoint uint16
}

// pair is one pair of endpoints. The lock guards owner, serial and the place in the
// list of idle pairs; the sessions belong to the owner's thread.
type pair struct {
	key     pairKey
	owner   *Engine // the queue on which its sessions live
	serial  uint32  // of the latest session
	current *target // the latest session, if it lives
	former  *target // the one before: it executes nothing, and still sends its answers
	last    wire.Resume
	kept    int64         // nanoseconds for which last is worth remembering
	past    Traffic       // of the sessions that have been removed
	begins  bool          // between own and settle; the owner's
	since   int64         // when it became idle
	place   *list.Element // in the list of idle pairs; nil while it is owned, or has a session
}

func newPairs(secret [32]byte) *pairs {
	return &pairs{all: map[pairKey]*pair{}, door: session.NewListener(secret)}
}

// own returns the pair, if it belongs to e or is idle, and otherwise the queue that it
// belongs to. Until settle no other queue can own it, though it may not have a session
// yet.
func (ps *pairs) own(e *Engine, m *wire.HelloMsg) (p *pair, owner *Engine) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.expire(e.now)
	key := pairKey{m.Origin, m.Endpoint}
	p = ps.all[key]
	switch {
	case p == nil:
		p = &pair{key: key, owner: ps.pick(e), serial: m.Serial - 1}
		ps.all[key] = p
		if p.owner != e { // the hello has yet to get there
			ps.rest(p, e.now)
			return nil, p.owner
		}
	case p.owner != e && (p.place == nil || ps.spread != nil):
		return nil, p.owner
	case p.place != nil:
		ps.idle.Remove(p.place)
		p.place = nil
	}
	p.owner, p.begins = e, true
	return p, e
}

// pick returns the engine of a new pair, for which e has asked. The lock is held.
func (ps *pairs) pick(e *Engine) *Engine {
	if ps.spread == nil {
		return e
	}
	ps.next++
	return ps.spread[(ps.next-1)%len(ps.spread)]
}

// expire forgets the pairs that have expired, and further ones if there are too many.
// Their cookies stay valid: if a stranger could invalidate cookies by making many pairs,
// no other node's hello would ever be in time.
func (ps *pairs) expire(now int64) {
	for front := ps.idle.Front(); front != nil; front = ps.idle.Front() {
		p := front.Value.(*pair)
		if now-p.since < max(p.kept, cookiesDie) && ps.idle.Len() <= mostIdle {
			return
		}
		ps.idle.Remove(front)
		delete(ps.all, p.key)
	}
}

// rest puts a pair among the idle ones. The lock is held.
func (ps *pairs) rest(p *pair, now int64) {
	p.since = now
	p.place = ps.idle.PushBack(p)
}

// ended is called when a session of the pair has been removed. The pair remembers how far
// it got.
func (ps *pairs) ended(p *pair, t *target, now int64) {
	p.last = t.progress(t.s.Ran())
	p.kept = t.keep
	switch t {
	case p.current:
		p.current = nil
	case p.former:
		p.former = nil
	}
	if !p.begins {
		ps.settle(p, now)
	}
}

// settle undoes own: a pair that has no session is idle.
func (ps *pairs) settle(p *pair, now int64) {
	p.begins = false
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.current == nil && p.former == nil && p.place == nil {
		ps.rest(p, now)
	}
}

// drop forgets a pair that has not got a session after all.
func (ps *pairs) drop(p *pair) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p.current == nil && p.former == nil {
		delete(ps.all, p.key)
	}
}

// proven reports whether a hello carries a good cookie, and otherwise returns the cookie
// that the initiator must send.
func (ps *pairs) proven(now int64, m *wire.HelloMsg, from []byte) (ok bool, cookie wire.Cookie) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.door.Proven(now, m, from) {
		return true, cookie
	}
	return false, ps.door.Cookie(now, m, from)
}

// later reports whether serial number a was given after b.
func later(a, b uint32) bool { return int32(a-b) > 0 }
