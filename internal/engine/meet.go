// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"

	"github.com/xdpfab/xdpfab/internal/session"
)

// met is called when a target has answered a hello, and so has told its identity. If the
// endpoint is already known by another address, this address joins it, before there is a
// second session.
func (c *conn) met() {
	r := c.r
	life := c.ini.Life()
	if life == 0 {
		c.close(session.ProtocolError)
		return
	}
	if c.by.asked == r {
		r.answered(c.by, c)
		return
	}
	if other := r.origin.remotes[c.identity()]; other != nil && other != r {
		if r.id.life != 0 && r.id != c.identity() {
			r.restarted(c, c.by.life.Load() == life)
		}
		c.close(session.Renamed)
		other.join(r, c.by, life)
		return
	}
	r.claim(c.identity())
}

// identity returns the identity that the target has told.
func (c *conn) identity() identity {
	return identity{cmp.Or(c.ini.Lasting(), c.ini.Life()), c.r.id.endpoint}
}

// claim makes sure that there is one handshake with each life of an endpoint: any other
// address from which the same life answers joins this remote.
func (r *remote) claim(id identity) {
	r.unclaim()
	if r.id.life == 0 {
		r.id = id
	}
	r.claimed = id
	r.origin.remotes[r.claimed] = r
}

// unclaim drops a claim that no session has confirmed.
func (r *remote) unclaim() {
	if r.claimed != r.id && r.origin.remotes[r.claimed] == r {
		delete(r.origin.remotes, r.claimed)
	}
	r.claimed = identity{}
}

// settled is called when a target has accepted a session, which proves that this life is
// the present one. If it is another life than before, the target has restarted, or the
// address now belongs to another node. An answer without a session proves nothing: a
// former life may have given it.
func (c *conn) settled() {
	r, id, life := c.r, c.identity(), c.ini.Life()
	told := c.by.life.Swap(life) == life
	switch {
	case r.id != id:
		r.restarted(c, told)
	case r.process != 0 && r.process != life:
		r.succeeded(life)
	}
	r.id, r.process = id, life
	r.claimed = r.id
	r.origin.remotes[r.id] = r
}

// restarted is called when a life answers c that is not the one that answered before. The
// operations in flight met the former life. Operations on memory and messages that wait
// were meant for it as well: they fail, so that the first use after a restart reports it.
// An address that was told of that life already is not told again.
func (r *remote) restarted(c *conn, told bool) {
	r.releaseIdentity()
	if r.suspended != nil {
		r.suspended.close(session.PeerRestarted)
	}
	r.failWhere(Result{Outcome: NotExecuted, Reason: session.PeerRestarted}, func(f *flight) bool {
		return f.failed || !told && f.Peer == c.by.id && (f.Verb.Array() || f.message() || f.Verb == VerbWatch)
	})
	r.failWatches(Result{Outcome: NotExecuted, Reason: session.PeerRestarted})
	r.e.count[PeersRestarted]++
	r.leaveBehind(c.by, c.ini.Life())
	f := r.empty()
	for f != nil {
		next := f.next
		f.next = nil
		r.e.route(f, r.origin.roster.find(f.Peer))
		f = next
	}
}

// succeeded is called when another process accepts a session than the one before, which
// had something that outlives processes: the identity stays. Operations that name a
// registration are left to the target, which refuses them if that ended with the
// former process. All others were meant for what that process had. The suspended session
// is left to resumed.
func (r *remote) succeeded(life uint64) {
	r.failWhere(Result{Outcome: NotExecuted, Reason: session.PeerRestarted}, func(f *flight) bool {
		return f.message() || f.Verb.Array() && f.Incarnation == 0
	})
	r.outlived(life)
}

// outlived ends the watches, also those that wait to begin, if they have not been told of
// this process: only what outlives processes has been kept. What is posted from here on
// is meant for this process, so the next session with it is none with another one.
func (r *remote) outlived(life uint64) {
	if r.process == life {
		return
	}
	r.process = life
	for _, p := range r.peers {
		p.life.Store(life)
	}
	restart := Result{Outcome: NotExecuted, Reason: session.PeerRestarted}
	r.failWhere(restart, func(f *flight) bool { return f.Verb == VerbWatch })
	r.failWatches(restart)
	if r.conn != nil {
		r.conn.ini.Watch(r.e.now, false)
	}
	r.e.count[PeersRestarted]++
}

// leaveBehind keeps the addresses of r from which a life has answered: by, and those that
// have been told of it already. The others may still be addresses of the former life's
// node, so they stay together in a remote of their own, until an answer shows which
// endpoint they belong to.
func (r *remote) leaveBehind(by *Peer, life uint64) {
	peers := r.peers
	r.peers = []*Peer{by}
	var rest []*Peer
	for _, p := range peers {
		switch {
		case p == by:
		case p.life.Load() == life:
			r.peers = append(r.peers, p)
		default:
			rest = append(rest, p)
		}
	}
	if len(rest) == 0 {
		return
	}
	former := newRemote(r.origin, r.id, rest...)
	for _, p := range rest {
		p.r = former
	}
	r.origin.remotes[r.id] = former
}

// join takes over another remote that an answer has shown to be the same endpoint. The
// address from which the answer came serves the next session.
func (r *remote) join(from *remote, by *Peer, life uint64) {
	for _, p := range from.peers {
		p.r = r
		p.life.Store(life)
	}
	r.peers = append(from.peers, r.peers...)
	for i, p := range r.peers {
		if p == by {
			r.peers[0], r.peers[i] = r.peers[i], r.peers[0]
		}
	}
	f := from.empty()
	from.peers = nil
	for f != nil {
		next := f.next
		f.next = nil
		r.push(f)
		f = next
	}
}
