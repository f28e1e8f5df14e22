// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Peer is a destination of operations: one endpoint of one node, as seen from
// one endpoint here. Its session comes into being with the first operation, and
// anew after it has ended. Everything belongs to the engine's thread.
type Peer struct {
	e        *Engine
	path     path
	lane     uint8
	endpoint uint16

	head, tail *Op   // operations to pack, in posting order
	listed     bool  // on the engine's ready list
	conn       *conn // the present session; nil before the first
	limbo      *conn // the session before, suspended or settling, if any
	watches    []*Op // VerbWatch operations, which end with the session
	closed     bool  // by Close: operations fail from then on
}

// NewPeer returns the peer at the end of link. Nothing is sent.
func (e *Engine) NewPeer(link wire.Link, lane uint8, endpoint uint16) (*Peer, error) {
	t, err := wire.NewTemplate(link)
	if err != nil {
		return nil, err
	}
	p := &Peer{e: e, lane: lane, endpoint: endpoint}
	p.path = path{Template: t, self: link.Remote == e.cfg.Local}
	return p, nil
}

// push appends an operation to the queue.
func (p *Peer) push(op *Op) {
	if p.closed {
		op.fail(Result{Fate: NotExecuted, Reason: session.ClosedHere})
		op.finish()
		return
	}
	if p.head == nil {
		p.head = op
	} else {
		p.tail.next = op
	}
	p.tail = op
	if !p.listed {
		p.listed = true
		p.e.ready = append(p.e.ready, p)
	}
}

// pop takes the first operation off the queue.
func (p *Peer) pop() *Op {
	op := p.head
	p.head, op.next = op.next, nil
	return op
}

// connect makes a new session when there is none. False means that there is no
// room for one, and the queue has been failed.
func (p *Peer) connect() bool {
	e := p.e
	if p.conn != nil && !p.conn.over() {
		return true
	}
	c := &conn{p: p}
	if e.closing || !e.table.add(c) && !(e.sacrifice() && e.table.add(c)) {
		why := session.RefusedFull
		if e.closing {
			why = session.ClosedHere
		}
		p.failQueue(Result{Fate: NotExecuted, Reason: why})
		return false
	}
	params := session.Params{
		Local: c.slot.id, Lane: p.lane, Endpoint: p.endpoint,
		MaxFrame: e.maxFrame(&p.path), Nonce: e.cfg.Random(),
	}
	if p.limbo != nil {
		params.Resume = p.limbo.ini.Identity()
	}
	c.ini = session.NewInitiator(&e.cfg.Session, e.reqs, params, e.now)
	c.path = p.path
	c.path.SetFlow(uint32(c.slot.id))
	if p.limbo != nil {
		c.path = p.limbo.path // the same flow, so that it comes to the same queue
	}
	p.conn = c
	e.count[SessionsOpened]++
	e.touch(c, &c.dirty)
	return true
}

// pack fills frames with the operations that wait, as far as the window allows.
func (p *Peer) pack() {
	if p.head == nil || !p.connect() {
		return
	}
	for p.head != nil {
		b := p.conn.ini.Stage()
		if b == nil && p.e.reqs.Empty() && p.e.sacrifice() {
			b = p.conn.ini.Stage()
		}
		if b == nil {
			return
		}
		if !p.packFrame(b) {
			p.conn.ini.Unstage(b)
			return
		}
	}
}

// failQueue completes every operation that waits, and every watch.
func (p *Peer) failQueue(r Result) {
	for p.head != nil {
		op := p.pop()
		op.fail(r)
		if op.pending == 0 {
			op.finish()
		}
	}
	p.failWatches(r)
}

// failWatches completes the watches: what they watched has ended.
func (p *Peer) failWatches(r Result) {
	watches := p.watches
	p.watches = nil
	if r.Reason == session.PeerRestarted {
		r.Fate = Restarted // for a watch, this is the news
	}
	for _, op := range watches {
		op.pending = 0
		op.fail(r)
		op.finish()
	}
}

// Unwatch completes the watch whose Value is the given one, as if the session had
// been closed here. Engine's thread only.
func (p *Peer) Unwatch(value uint64) {
	for i, op := range p.watches {
		if op.Value == value {
			p.watches = append(p.watches[:i], p.watches[i+1:]...)
			if len(p.watches) == 0 && p.conn != nil {
				p.conn.ini.Watch(p.e.now, false)
			}
			op.pending = 0
			op.fail(Result{Fate: NotExecuted, Reason: session.ClosedHere})
			op.finish()
			return
		}
	}
}

// Close ends the sessions to the peer, if there are any, and completes what waits.
// Later operations fail. Engine's thread only.
func (p *Peer) Close() {
	p.closed = true
	p.end(session.ClosedHere)
}

// end is Close with a reason, and not for good.
func (p *Peer) end(why session.Reason) {
	if p.limbo != nil {
		p.limbo.close(why)
	}
	if p.conn != nil {
		p.conn.close(why)
	}
	p.failQueue(Result{Fate: NotExecuted, Reason: why})
}
