// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// move is a peer that is reached by another path from now on.
type move struct {
	p    *Peer
	link wire.Link
	path path
}

// moves is the mailbox of the moves that the engine has not seen yet.
type moves struct {
	mu   sync.Mutex
	list []move
}

func (m *moves) leave(x move) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list = append(m.list, x)
}

func (m *moves) take() []move {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := m.list
	m.list = nil
	return list
}

// takeMoves has the peers that moved take their new paths.
func (e *Engine) takeMoves() int {
	list := e.moves.take()
	for i := range list {
		if m := &list[i]; !m.p.closed {
			m.p.link, m.p.path, m.p.narrow = m.link, m.path, session.Narrow{}
			m.p.r.moved(m.p)
		}
	}
	return len(list)
}

// moved changes the path of the sessions whose frames go to p. If the endpoint has other
// addresses, the target at the new path is asked whether it is still the same endpoint;
// until the answer p keeps naming the old one, so that operations stay in order.
func (r *remote) moved(p *Peer) {
	for _, c := range []*conn{r.conn, r.suspended} {
		if c != nil && c.by == p {
			c.aim(p)
			c.ini.Hurry(r.e.now)
			c.progress()
		}
	}
	r.retryAt = 0
	p.askNoMore()
	if len(r.peers) > 1 {
		p.asked = newRemote(r.origin, identity{endpoint: r.id.endpoint}, p)
		p.asked.connect()
	}
}

// askNoMore ends a question about the endpoint that a peer is an address of.
func (p *Peer) askNoMore() {
	if q := p.asked; q != nil {
		p.asked = nil
		if q.conn != nil {
			q.conn.close(session.Renamed)
		}
	}
}

// answered is called when the target at the new path of p has told its identity. If it is
// the endpoint that p has been an address of, nothing changes. Otherwise p leaves that
// endpoint, with the operations that wait for it. They were meant for the former
// identity, which q keeps until a session proves another one and so has them fail.
func (q *remote) answered(p *Peer, c *conn) {
	r := p.r
	p.asked = nil
	c.close(session.Renamed)
	if c.identity() == r.id {
		return
	}
	r.peers = slices.DeleteFunc(r.peers, func(x *Peer) bool { return x == p })
	q.id, q.process, p.r = r.id, r.process, q
	ofPeer := func(f *flight) bool { return f.Peer == p.id }
	r.hand(q, ofPeer)
	r.unwatch(Result{Outcome: Restarted, Reason: session.PeerRestarted}, ofPeer)
	if len(r.peers) == 0 { // its other addresses have been closed or have left meanwhile
		r.end(session.PeerRestarted)
		r.releaseIdentity()
		return
	}
	r.avoid(p)
}

// hand gives another remote the waiting operations for which pick is true. One that has a
// part in flight cannot go on there. An array ends with the outcome of that part. A
// message has not arrived, so it did not run: it waits for the verdict on the others.
func (r *remote) hand(q *remote, pick func(f *flight) bool) {
	restart := Result{Outcome: NotExecuted, Reason: session.PeerRestarted}
	r.unstage()
	f := r.empty()
	for f != nil {
		next := f.next
		f.next = nil
		switch {
		case !pick(f):
			r.push(f)
		case f.Verb == VerbFlush:
			r.handFlush(q, f)
		case f.pending > 0 && !f.message():
			f.queued = false
			f.fail(restart)
		default:
			if r.abandoned(f); f.message() && f.sent > 0 {
				f.fail(restart)
			}
			q.push(f)
		}
		f = next
	}
}
