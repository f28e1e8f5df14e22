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

	head, tail *Op // operations to pack, in posting order
	ini        *session.Initiator
	slot       slot
	frames     [session.MaxWindow][]segment // by psn, what each frame in flight carries
	listed     bool                         // on the engine's ready list
	dirty      bool                         // on the engine's dirty list
	resent     uint64                       // of the session's count, already in the engine's
}

// segment is a record in flight: count elements of an operation, from first on.
type segment struct {
	op           *Op
	first, count uint32
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

func (p *Peer) place() *slot { return &p.slot }
func (p *Peer) link() *path  { return &p.path }

func (p *Peer) emit(now int64, b []byte) int {
	n := p.ini.Emit(now, b)
	if p.ini.Resent != p.resent {
		p.e.count[FramesResent] += p.ini.Resent - p.resent
		p.resent = p.ini.Resent
	}
	return n
}

func (p *Peer) clean() {
	p.dirty = false
	if state, _ := p.ini.State(); state == session.Closed {
		p.e.table.remove(p) // its farewell is sent
	}
}

// push appends an operation to the queue.
func (p *Peer) push(op *Op) {
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
	if p.ini != nil {
		if state, _ := p.ini.State(); state != session.Closed {
			return true
		}
		if p.dirty {
			return true // the old session's farewell comes first
		}
		p.e.table.remove(p)
	}
	e := p.e
	if e.closing || !e.table.add(p) {
		p.ini = nil
		why := session.RefusedFull
		if e.closing {
			why = session.ClosedHere
		}
		p.failQueue(Result{Fate: NotExecuted, Reason: why})
		return false
	}
	p.ini = session.NewInitiator(&e.cfg.Session, e.reqs, session.Params{
		Local: p.slot.id, Lane: p.lane, Endpoint: p.endpoint,
		MaxFrame: e.maxFrame(&p.path), Nonce: e.cfg.Random(),
	}, e.now)
	p.resent = 0
	p.path.SetFlow(uint32(p.slot.id))
	e.count[SessionsOpened]++
	e.touch(p, &p.dirty)
	return true
}

// pack fills frames with the operations that wait, as far as the window allows.
func (p *Peer) pack() {
	if p.head == nil || !p.connect() {
		return
	}
	for p.head != nil {
		b := p.ini.Stage()
		if b == nil {
			return
		}
		if !p.packFrame(b) {
			p.ini.Unstage(b)
			return
		}
	}
}

// packFrame fills one frame. It returns false when nothing could be packed.
func (p *Peer) packFrame(b []byte) bool {
	e := p.e
	w := &e.writer
	w.Reset(b, len(b))
	segs := e.takeSegments()
	for p.head != nil {
		op := p.head
		if op.Flags&FlagFence != 0 && op.sent == 0 && (w.Ops() > 0 || p.ini.InFlight() > 0) {
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
	psn := p.ini.Commit(e.now, b, w.Len(), uint8(w.Ops()))
	p.frames[psn%session.MaxWindow] = segs
	e.count[OpsSent] += uint64(len(segs))
	e.touch(p, &p.dirty)
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

// takeSegments and giveSegments recycle the lists of segments.
func (e *Engine) takeSegments() []segment {
	if n := len(e.segs); n > 0 {
		s := e.segs[n-1]
		e.segs = e.segs[:n-1]
		return s
	}
	return make([]segment, 0, 64)
}

func (e *Engine) giveSegments(s []segment) {
	clear(s)
	e.segs = append(e.segs, s[:0])
}
