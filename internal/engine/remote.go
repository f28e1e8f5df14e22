// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// remote is one endpoint of another node, as seen from one origin, by whatever addresses
// it is known. The first operation makes its session; after that ended, the next
// operation makes another. Everything belongs to the engine's thread.
type remote struct {
	e      *Engine
	origin *Origin
	id     identity // life 0: it has not answered yet
	// process is the life of the process that accepted a session last, or that a watch
	// has told of since: what has the identity may outlive it. 0 until then.
	process uint64
	peers   []*Peer // its addresses; the next session goes by the first
	// claimed is the identity that the target of the session being made has told. Only a
	// session proves that this identity is the present one.
	claimed identity

	head, tail *flight   // operations to pack, in posting order
	listed     bool      // on the engine's ready list
	conn       *conn     // the present session; nil before the first
	suspended  *conn     // the session before it, while its operations may still become known; or nil
	watches    []*flight // VerbWatch operations, which end with the session
	past       Traffic   // of the sessions that have ended

	retries   int   // hellos of retry since one was accepted
	retryAt   int64 // when the next one may leave
	fullSince int64 // when the target began to refuse the session for want of room; 0 when it does not
	outdated  int   // sessions in a row that the target says have ended
	// refusal is what the target has answered last to hellos since the suspended session
	// is in doubt; session.Alive for nothing.
	refusal    session.Reason
	unanswered unanswered
}

func newRemote(o *Origin, id identity, peers ...*Peer) *remote {
	return &remote{e: o.e, origin: o, id: id, peers: peers}
}

// list puts the remote on the list of those with operations to pack.
func (r *remote) list() {
	if !r.listed {
		r.listed = true
		delete(r.e.starved, r)
		r.e.ready = append(r.e.ready, r)
	}
}

// unshift puts a list of operations back at the head of the queue.
func (r *remote) unshift(first *flight) {
	if first == nil {
		return
	}
	last := first
	for last.queued = true; last.next != nil; last.queued = true {
		last = last.next
	}
	if r.head == nil {
		r.tail = last
	}
	r.head, last.next = first, r.head
	r.list()
}

// push appends an operation to the queue.
func (r *remote) push(f *flight) {
	if r.head == nil {
		r.head = f
	} else {
		r.tail.next = f
	}
	r.tail, f.queued = f, true
	r.list()
}

// await is called before an operation begins to wait. If none does, the session that is
// being made has the give-up time before it again.
func (r *remote) await() {
	if r.head == nil && r.conn != nil {
		r.e.look()
		r.conn.ini.Await(r.e.now)
	}
}

// empty takes all operations off the queue, and returns the first one.
func (r *remote) empty() *flight {
	f := r.head
	r.head, r.tail = nil, nil
	delete(r.e.starved, r)
	return f
}

// pop takes the first operation off the queue.
func (r *remote) pop() *flight {
	f := r.head
	r.head, f.next, f.queued = f.next, nil, false
	return f
}

// connect makes a new session when there is none. False means that there is no room for
// one, and that the operations in the queue have failed.
func (r *remote) connect() bool {
	e := r.e
	if r.conn != nil && r.conn.ini.Expired(e.now) {
		r.conn.close(session.Idle)
	}
	if r.conn != nil && !r.conn.spent() {
		return true
	}
	c := &conn{r: r, slot: slot{traffic: Traffic{Sessions: 1}}}
	if e.closing || !r.placed(c) {
		why := session.RefusedFull
		if e.closing {
			why = session.ClosedHere
		}
		r.failQueue(Result{Outcome: NotExecuted, Reason: why})
		return false
	}
	r.origin.count(1)
	by := r.peers[0]
	if r.origin.serial++; r.origin.serial == several {
		r.origin.serial++
	}
	c.unit = r.origin.serial
	params := session.Params{
		Local: c.slot.id, Lane: by.lane, Endpoint: r.id.endpoint,
		MaxFrame: e.maxFrame(&by.path), Sure: e.sureFrame(&by.path), Narrow: by.narrow, Nonce: e.cfg.Random(),
		Origin: r.origin.id, Serial: r.origin.serial, Unordered: r.origin.unordered,
		Options: wire.Options{Class: by.link.Class}, Key: r.origin.key,
	}
	if r.suspended != nil {
		params.Resume = r.suspended.ini.Identity()
	}
	c.ini = session.NewInitiator(r.origin.cfg, r.origin.buffers, params, e.now)
	c.aim(by)
	r.conn = c
	e.count[SessionsOpened]++
	e.touch(c, &c.dirty)
	return true
}

// placed gives a new session a place in the table. For operations that wait, it gives up
// a suspended session if there is no room; for the sake of a suspended one, it gives up
// none.
func (r *remote) placed(c *conn) bool {
	e, o := r.e, r.origin
	wanted := r.head != nil || r.suspended == nil
	if !o.mayConnect() && !(wanted && e.evictSuspendedOf(o.payer)) {
		return false
	}
	return e.table.add(c) || wanted && e.evictSuspended() && e.table.add(c)
}

// refused reports whether the next session has been refused and the target is asked again
// at the pace of retry, while the operations that wait go on waiting: as long as there is
// doubt about a session that the target has just forgotten, as a target that restarts
// does, or while the target has no room.
func (r *remote) refused() bool {
	return (r.fullSince != 0 || r.suspended != nil && r.suspended.doubted) && r.conn.spent()
}

// crowded is called when the target has no room for another session. It reports whether
// the target is to be asked again, which it is for the give-up time.
func (r *remote) crowded() bool {
	if r.fullSince == 0 {
		r.fullSince = r.e.now
	}
	return r.e.now-r.fullSince < int64(r.origin.cfg.GiveUp)
}

// retry makes a new session after a refusal, or for the sake of the suspended one: only a
// new session can learn what became of it. A target that refuses is asked less and less
// often.
func (r *remote) retry() {
	if r.e.now < r.retryAt {
		return
	}
	const first, longest = 10 * time.Millisecond, time.Second
	r.retryAt = r.e.now + int64(min(first<<min(r.retries, 10), longest))
	r.retries++
	r.connect()
}

// failWhere completes the waiting operations for which pick is true.
func (r *remote) failWhere(res Result, pick func(f *flight) bool) {
	r.unstage()
	f := r.empty()
	for f != nil {
		next := f.next
		f.next = nil
		if !pick(f) {
			r.push(f)
		} else {
			f.queued = false
			r.failWaiting(f, res)
		}
		f = next
	}
}

// failWaiting completes an operation that has left the queue before it was packed whole.
func (r *remote) failWaiting(f *flight, res Result) {
	if f.Verb == VerbFlush { // what was before it has left the queue, too
		r.flush(f)
		return
	}
	r.abandoned(f)
	f.fail(res)
	if f.pending == 0 {
		f.finish()
	}
}

func all(*flight) bool { return true }

// closedHere is the result of operations that wait for an address that was closed.
var closedHere = Result{Outcome: NotExecuted, Reason: session.ClosedHere}

// failQueue completes every operation that waits, and every watch.
func (r *remote) failQueue(res Result) {
	r.failWhere(res, all)
	r.failWatches(res)
}

// failWatches completes the watches: the session that they watched has ended.
func (r *remote) failWatches(res Result) {
	watches := r.watches
	r.watches = nil
	if res.Reason == session.PeerRestarted {
		res.Outcome = Restarted // a watch is there to report this
	}
	for _, f := range watches {
		f.pending = 0
		f.fail(res)
		f.finish()
	}
}

// unwatch completes the watches for which pick is true; the session continues.
func (r *remote) unwatch(res Result, pick func(f *flight) bool) {
	for i := len(r.watches) - 1; i >= 0; i-- {
		f := r.watches[i]
		if !pick(f) {
			continue
		}
		r.watches = slices.Delete(r.watches, i, i+1)
		f.pending = 0
		f.fail(res)
		f.finish()
	}
	if len(r.watches) == 0 && r.conn != nil && len(r.conn.tickets) == 0 {
		r.conn.ini.Watch(r.e.now, false)
	}
}

// leave removes an address that was closed, and the operations that wait for it.
// With the last address the sessions end.
func (r *remote) leave(p *Peer) {
	ofPeer := func(f *flight) bool { return f.Peer == p.id }
	r.peers = slices.DeleteFunc(r.peers, func(x *Peer) bool { return x == p })
	if len(r.peers) == 0 {
		r.end(session.ClosedHere)
		r.releaseIdentity()
		return
	}
	r.avoid(p)
	r.failWhere(closedHere, ofPeer)
	r.unwatch(closedHere, ofPeer)
	for _, c := range []*conn{r.suspended, r.conn} {
		if c != nil {
			c.recallTickets(ofPeer)
			c.recallFrames(ofPeer)
		}
	}
}

// avoid moves the sessions whose frames go to p, which is no address of the remote any
// more, to another address. A session cannot change between encapsulations, since frames
// would not fit: it is replaced if nothing is in flight, and otherwise keeps its path.
func (r *remote) avoid(p *Peer) {
	i := slices.IndexFunc(r.peers, func(x *Peer) bool { return x.path.Kind() == p.path.Kind() })
	for _, c := range []*conn{r.conn, r.suspended} {
		switch {
		case c == nil || c.by != p:
		case i >= 0:
			c.aim(r.peers[i])
		case !c.spent() && c.ini.InFlight() == 0 && len(c.tickets) == 0:
			c.close(session.Renamed)
			if len(r.watches) > 0 {
				r.connect()
			}
		}
	}
}

// releaseIdentity makes room for another remote of the same identity.
func (r *remote) releaseIdentity() {
	r.unclaim()
	if r.origin.remotes[r.id] == r {
		delete(r.origin.remotes, r.id)
	}
}

// end closes the sessions, and completes all operations that wait.
func (r *remote) end(why session.Reason) {
	if r.suspended != nil {
		r.suspended.close(why)
	}
	if r.conn != nil {
		r.conn.close(why)
	}
	r.failQueue(Result{Outcome: NotExecuted, Reason: why})
}
