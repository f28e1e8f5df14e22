// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// party is all initiators that send from one address. Room is shared among parties, so
// that one of them, whatever it does, leaves room for the others.
type party struct {
	key      session.Party
	sessions int   // accepted
	mayAt    int64 // in lived: when it may next take the place of a session of its own
}

// crowd counts the accepted sessions by party.
type crowd struct {
	parties   map[session.Party]*party // those that have sessions
	accepted  int                      // targets in the table
	sizes     []int                    // sizes[n] parties have n sessions each; sizes[0] means nothing
	most      int                      // sessions of the party that has the most
	hand      int                      // of table.all: the session that room looked at last
	fullUntil int64                    // in lived: until then room need not look again
}

func newCrowd() crowd {
	return crowd{parties: make(map[session.Party]*party), sizes: make([]int, 1)}
}

func partyOf(src *wire.Source) session.Party {
	if !src.RemoteIP.IsValid() {
		return session.Party{MAC: src.Remote}
	}
	return session.Party{IP: src.RemoteIP}
}

// party returns the party at an address, which is known as long as it has sessions.
func (c *crowd) party(src *wire.Source) *party {
	return c.partyAt(partyOf(src))
}

func (c *crowd) partyAt(key session.Party) *party {
	p := c.parties[key]
	if p == nil {
		p = &party{key: key}
	}
	return p
}

// join and leave count the party's sessions.
func (c *crowd) join(p *party) {
	c.resize(p, p.sessions+1)
	c.accepted++
	c.parties[p.key] = p
}

func (c *crowd) leave(p *party) {
	c.resize(p, p.sessions-1)
	c.accepted--
	if p.sessions == 0 {
		delete(c.parties, p.key)
	}
}

// resize keeps count of how many parties have how many sessions, and of the most that
// one has.
func (c *crowd) resize(p *party, sessions int) {
	if sessions == len(c.sizes) {
		c.sizes = append(c.sizes, 0)
	}
	c.sizes[p.sessions]--
	c.sizes[sessions]++
	p.sessions = sessions
	for c.most = max(c.most, sessions); c.most > 0 && c.sizes[c.most] == 0; {
		c.most--
	}
}

// A session must have shown this much to stay when room is short, in nanoseconds.
const (
	// proofTime is the time after its beginning within which a session must execute
	// something.
	proofTime = int64(1e9)
	// restTime is the longest silence: an initiator closes an idle session before that.
	restTime = int64(session.IdleClose) * 4 / 3
)

// candidates is the number of sessions that room looks at, if one of them may go;
// otherwise it looks further. A hello costs little more when the table is full, however
// large it is.
const candidates = 64

// ownPace is the time after which the greediest party may next take the place of a
// session of its own, in nanoseconds: sessions that replace each other cost others the
// time that it takes to begin them.
const ownPace = int64(10e6)

// room makes sure that there is room for another session of a party. If there is none, it
// removes a session of the greediest party, or one that has never been used, or one that
// has long been silent; one of its own, if it is the greediest itself. An honest session
// is none of these.
func (e *Engine) room(p *party) bool {
	if e.accepted < e.cfg.Sessions-e.cfg.Sessions/8 { // the rest is for sessions that this engine opens
		return true
	}
	greedy := e.most > p.sessions+1
	own := p.sessions > 0 && p.sessions == e.most
	if own && e.lived < p.mayAt || !greedy && e.lived < e.fullUntil {
		return false
	}
	var victim *target
	for n := 0; n < len(e.table.all) && (n < candidates || victim == nil); n++ {
		e.hand = (e.hand + 1) % len(e.table.all)
		t, ok := e.table.all[e.hand].(*target)
		if !ok || greedy && t.party.sessions < e.most || !greedy && !t.idles() || own && t.party != p {
			continue
		}
		if victim == nil || t.before(victim) {
			victim = t
		}
	}
	if own {
		p.mayAt = e.lived + ownPace
	}
	if victim == nil {
		if !own {
			e.fullUntil = e.lived + timerPeriod // all were looked at
		}
		return false
	}
	e.count[SessionsEvicted]++
	victim.remove(endedEvicted)
	return true
}

// idles reports whether the session has shown too little to stay when room is short.
func (t *target) idles() bool {
	silent := t.e.lived - t.s.HeardAt()
	return !t.used() && !t.waits && silent >= proofTime || silent >= restTime
}

// before reports whether t should go rather than x: the session that was never used goes
// first, then the one silent for longer.
func (t *target) before(x *target) bool {
	if t.used() != x.used() {
		return !t.used()
	}
	return t.s.HeardAt() < x.s.HeardAt()
}
