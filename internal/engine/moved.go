// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"sync"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// move is a peer that is reached by another path from now on.
type move struct {
	p    *Peer
	link wire.Link
	path path
}

// moves is the mailbox of those that the engine has not seen yet.
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
			m.p.link, m.p.path = m.link, m.path
			m.p.r.moved(m.p)
		}
	}
	return len(list)
}

// moved changes the path of the sessions that run by way of p. If the endpoint has
// other addresses, p has to show anew that it is one of them: what is posted to p
// from now on waits until the target at its new path has said who it is.
func (r *remote) moved(p *Peer) {
	for _, c := range []*conn{r.conn, r.limbo} {
		if c != nil && c.by == p {
			c.take(p)
			c.ini.Hurry(r.e.now)
			c.progress()
		}
	}
	r.retryAt = 0
	if len(r.peers) > 1 {
		r.peers = slices.DeleteFunc(r.peers, func(x *Peer) bool { return x == p })
		p.r = newRemote(r.origin, identity{endpoint: r.id.endpoint}, p)
	}
}
