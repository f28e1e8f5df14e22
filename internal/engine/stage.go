// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// stage is the request frame that a session is filling. Simple operations go into it as
// soon as they are posted: that is the ordinary path. All other operations, and those
// that find the window shut or others waiting, go through the remote's queue.
//
// While few frames are in flight, the next round sends the frame, full or not. Otherwise
// the frame stays until it is full or one of those in flight is answered, and operations
// that are posted meanwhile join it. A frame that stays holds simple operations only, so
// that they can go back to the queue as if they had never left it; code that looks at the
// queue has them put back first.
type stage struct {
	buf    []byte // nil: there is no frame
	w      wire.RecordWriter
	cargo  *cargo    // nil likewise
	last   kind      // of the last record
	leader *fragment // the last one, if followers can be added to it
	simple bool      // the frame holds nothing but simple operations
	flags  uint8     // of the frame: FlagMessages or none
}

// busy is the number of frames in flight at which a partial frame begins to wait for more
// operations.
const busy = 4

// take takes an operation; every operation comes here, from a ring or from Submit.
func (e *Engine) take(f *flight) {
	p := f.ring.last // nearly always
	if p == nil || p.id != f.Peer || p.closed {
		p = f.ring.find(f.Peer)
	}
	if p != nil && f.simple() {
		w := &e.word
		w.set(&f.Entry)
		if r := p.r; r.head == nil && r.conn != nil && r.conn.severed == 0 {
			if c := r.conn; c.stage.buf != nil && c.stage.extend(w, f.Offset) {
				c.stage.note(f)
				return
			} else if c.join(f) {
				r.list()
				return
			}
		}
	}
	f.extent, f.noted, f.covered = 0, false, 0 // set here only, since simple operations do not use them
	e.route(f, p)
}

// route puts an operation into the queue of the endpoint that its peer is a name of.
func (e *Engine) route(f *flight, p *Peer) {
	switch {
	case f.Verb == VerbFlush && f.Peer == 0:
		e.flushAll(f)
	case p == nil:
		if f.ring != nil { // and no marker, for which the end of the peer is as good
			f.fail(closedHere)
		}
		f.finish()
		e.say()
	case f.malformed():
		f.fail(Result{Outcome: NotExecuted, Status: wire.StatusBadCount})
		f.finish()
		e.say()
	case e.viaHost != nil && f.Verb == wire.VerbWait && !e.viaHost.Waits():
		f.fail(Result{Outcome: NotExecuted, Status: wire.StatusUnsupported})
		f.finish()
		e.say()
	case e.viaHost != nil:
		e.viaHost.send(f, p)
	default:
		p.r.await()
		p.r.push(f)
	}
}

// join puts a simple operation that does not extend a run into the frame. When that is
// not possible now, it does nothing and returns false.
func (c *conn) join(f *flight) bool {
	s := &c.stage
	if s.buf == nil && !c.begin() {
		return false
	}
	if c.add(f) {
		return true
	}
	if s.w.Ops() > 0 { // it is full
		if c.r.e.look(); c.usable() {
			if c.commit(); c.begin() && c.add(f) {
				return true
			}
		}
	}
	c.unstage()
	return false
}

// extend adds a simple operation to the run at the end of the frame, if it fits there;
// the caller notes the flight in the list of fragments.
func (s *stage) extend(w *Word, offset uint64) bool {
	return s.last.is(&w.kind) && s.w.Extend(offset, w.Operand)
}

// note adds a simple operation, which is in the frame now, to the list of fragments. If
// it is in a run, it makes room for followers, so that Extend, which is on the ordinary
// path, does without a call that grows the list.
func (s *stage) note(f *flight) {
	f.sent, f.pending = 1, 1
	g := s.cargo
	g.frags = append(g.frags, fragment{f: f, count: 1, records: 1})
	s.leader = &g.frags[len(g.frags)-1]
	if len(g.frags) > 1 && len(g.followers) == cap(g.followers) {
		g.followers = slices.Grow(g.followers, 64)
	}
}

// put adds a simple operation to the run at the end of the frame, or else appends a
// record for it. It returns false, and does nothing, if the frame has no room.
func (c *conn) put(f *flight) bool {
	w := &c.r.e.word
	w.set(&f.Entry)
	if c.stage.extend(w, f.Offset) {
		c.stage.note(f)
		return true
	}
	return c.add(f)
}

// add appends a record for one simple operation alone.
func (c *conn) add(f *flight) bool {
	s, rec := &c.stage, &c.r.e.record
	operand, compare := f.operands()
	*rec = wire.Record{Verb: f.Verb, Op: f.Opcode, Datatype: f.Datatype, Key: f.Key, Incarnation: f.Incarnation,
		Offset: f.Offset, Count: 1, Operand: operand, Compare: compare}
	if !s.w.Append(rec) {
		return false
	}
	s.note(f)
	s.measure(f.resultLen())
	s.last = f.kind()
	return true
}

// measure records the length of the last record's value.
func (s *stage) measure(n int) {
	if g := s.cargo; len(g.frags) == 1 && n&3 == 0 {
		g.each = n
	} else if g.each != n {
		g.each = mixed
	}
}

// begin begins a frame, if the session and its window are open. A poster's look at the
// time may be old, and the session may have been idle for long: whoever commits the frame
// looks again.
func (c *conn) begin() bool {
	e, s := c.r.e, &c.stage
	if !c.usable() {
		return false
	}
	s.buf = c.ini.Stage()
	if s.buf == nil {
		return false
	}
	s.w.Reset(s.buf, len(s.buf))
	c.nextUnit()
	s.cargo, s.leader, s.simple, s.flags, s.last = e.load(), nil, true, 0, kind{}
	s.cargo.each = mixed
	return true
}

// usable reports whether the session can carry operations now.
func (c *conn) usable() bool {
	now := c.r.e.now
	return !c.spent() && !c.ini.Expired(now) && !c.ini.Doubtful(now)
}

// commit gives the frame to the session, to be sent in this round or the next.
func (c *conn) commit() {
	e, s := c.r.e, &c.stage
	e.look()
	n, flags := c.pad()
	psn := c.ini.Commit(e.now, s.buf, n, uint8(s.w.Ops()), flags)
	s.cargo.messages = s.flags == wire.FlagMessages
	c.frames[psn%session.MaxWindow] = s.cargo
	e.count[OpsSent] += uint64(s.w.Ops())
	c.traffic.Ops += uint64(s.w.Ops())
	c.traffic.Frames++
	s.buf, s.cargo, s.leader = nil, nil, nil
	e.touch(c, &c.dirty)
}

// pad makes the frame as long as the longest answer to it, if the target wants that, and
// returns its length and its flags.
func (c *conn) pad() (n int, flags uint8) {
	s := &c.stage
	n, flags = s.w.Len(), s.flags
	if long := s.w.Answer(); long > n+worthPadding && c.ini.Features()&wire.FeaturePadding != 0 {
		wire.Pad(s.buf, n, long)
		return long, flags | wire.FlagPadded
	}
	return n, flags
}

// worthPadding is by how many bytes an answer has to be longer than its request: for
// less, every packet has room in front.
const worthPadding = 128

// unstage puts the operations of the frame back at the head of the queue, and gives up
// the frame.
func (c *conn) unstage() { c.r.unshift(c.spill()) }

// spill gives up the frame and returns its operations as a list, or nil.
func (c *conn) spill() (first *flight) {
	s := &c.stage
	if s.buf == nil {
		return nil
	}
	c.ini.Unstage(s.buf)
	s.cargo.expand()
	for _, frag := range slices.Backward(s.cargo.frags) {
		f := frag.f
		f.sent, f.pending = 0, 0
		first, f.next = f, first
	}
	c.r.e.drop(s.cargo)
	s.buf, s.cargo, s.leader = nil, nil, nil
	return first
}

// unstage puts the operations of the stage back into the queue: code that looks at the
// queue calls it first.
func (r *remote) unstage() {
	if r.conn != nil {
		r.conn.unstage()
	}
}
