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

// packFrame fills one frame. It returns false when nothing could be packed.
func (p *Peer) packFrame(b []byte) bool {
	e, c := p.e, p.conn
	w := &e.writer
	w.Reset(b, len(b))
	segs := e.takeSegments()
	for p.head != nil {
		op := p.head
		if op.Flags&FlagFence != 0 && op.sent == 0 && (w.Ops() > 0 || c.ini.InFlight() > 0) {
			break
		}
		if !op.whole() {
			if seg, ok := p.packOp(w, op); ok {
				segs = append(segs, seg)
			} else if !op.whole() {
				break // the frame is full
			}
		}
		if op.whole() {
			p.pop()
			if op.pending == 0 {
				op.finish()
			}
		}
	}
	if w.Ops() == 0 {
		e.giveSegments(segs)
		return false
	}
	psn := c.ini.Commit(e.now, b, w.Len(), uint8(w.Ops()))
	c.frames[psn%session.MaxWindow] = segs
	e.count[OpsSent] += uint64(len(segs))
	e.touch(c, &c.dirty)
	return true
}

// packOp appends the next record of op to the frame. Without success the frame
// is full, or the operation is done as far as packing goes.
func (p *Peer) packOp(w *wire.RecordWriter, op *Op) (segment, bool) {
	rec := wire.Record{Verb: op.Verb, Op: op.Opcode, Datatype: op.Datatype, Key: op.Key}
	n := uint32(1)
	switch op.Verb {
	case VerbConnect: // the session is open, since a frame is being packed
		op.sent = 1
		return segment{}, false
	case VerbWatch: // ends with the session
		op.sent, op.pending = 1, 1
		p.watches = append(p.watches, op)
		p.conn.ini.Watch(p.e.now, true)
		return segment{}, false
	case wire.VerbLookup:
		rec.Name = op.Operand
	case wire.VerbList:
		rec.Ordinal = op.Count
	default:
		size := uint64(wire.ElemSize(op.Datatype))
		rec.Count = op.Count - op.sent
		rec.Total = rec.Count
		rec.Offset = op.Offset + uint64(op.sent)*size
		if rec.Count > 1 {
			if n = w.Fit(&rec); n == 0 {
				return segment{}, false
			}
			rec.Count = n
		}
		lo, hi := uint64(op.sent)*size, uint64(op.sent+n)*size
		if len(op.Operand) > 0 {
			rec.Operand = op.Operand[lo:hi]
		}
		if len(op.Compare) > 0 {
			rec.Compare = op.Compare[lo:hi]
		}
	}
	if !w.Append(&rec) {
		if w.Ops() == 0 { // not even an empty frame holds it: a malformed operation
			op.fail(Result{Fate: NotExecuted, Status: wire.StatusBadCount})
		}
		return segment{}, false
	}
	seg := segment{op: op, first: op.sent, count: n}
	op.sent += n
	op.pending++
	return seg, true
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
