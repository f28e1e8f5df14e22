// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// Posting without the cells of a ring: the caller has the turn. All methods here are for
// the engine's thread.

// Word describes a simple operation that has no operands, or 8 bytes of them, in the form
// in which the frame holds it: what a [Follower] does not.
type Word struct {
	kind
	Peer    PeerID
	Cookie  uint64 // as in Entry
	Operand uint64 // the first 8 bytes of Entry.Inline; 0 if there are no operands
}

// kind is what operations that can share a run have in common.
type kind struct {
	key         uint64
	incarnation uint32
	head        uint32 // verb, operation, datatype, flags; 0: nothing can join
}

// Of sets which operation it is.
func (w *Word) Of(verb wire.Verb, opcode, datatype uint8) { w.head = head(verb, opcode, datatype) }

// In sets which region the operation is on; see Entry.
func (w *Word) In(key uint64, incarnation uint32) { w.key, w.incarnation = key, incarnation }

// Is reports whether Of has said the same.
func (w *Word) Is(verb wire.Verb, opcode, datatype uint8) bool {
	return w.head == head(verb, opcode, datatype)
}

// On reports whether In has said the same.
func (w *Word) On(key uint64, incarnation uint32) bool {
	return w.key == key && w.incarnation == incarnation
}

// kind returns the kind of an operation.
func (x *Entry) kind() kind {
	return kind{x.Key, x.Incarnation, head(x.Verb, x.Opcode, x.Datatype) | uint32(x.Flags)<<24}
}

func (k *kind) is(x *kind) bool {
	return k.key == x.key && k.incarnation == x.incarnation && k.head == x.head
}

func head(verb wire.Verb, opcode, datatype uint8) uint32 {
	return uint32(verb) | uint32(opcode)<<8 | uint32(datatype)<<16
}

// Set describes an operation that was filled in, and reports whether it is a Word.
func (w *Word) Set(x *Entry) bool {
	w.set(x)
	w.Peer = x.Peer
	operand, compare := x.operandLens()
	return x.simple() && (operand+compare == 8 || x.Opcode == wire.OpRead)
}

// set describes a simple operation. If its operands take other than 8 bytes, it is no
// Word, and extends no run. Cookie is left alone.
func (w *Word) set(x *Entry) {
	w.kind, w.Operand = x.kind(), 0
	if x.Opcode != wire.OpRead {
		w.Operand = binary.LittleEndian.Uint64(x.Inline[:])
	}
}

// Extend posts an operation that joins the run at the end of the frame under
// construction, as a follower of the operation before it, if that is of the same ring and
// the two differ in nothing but what a Follower says. That is the ordinary path while
// operations are in flight. Extend returns false, and does nothing, if anything is
// unusual: then Begin follows, which also makes room for further flights. So Extend calls
// nothing, and keeps its arguments in registers.
func (e *Engine) Extend(r *Ring, w *Word, x Follower) bool {
	p := r.last
	if p == nil || p.id != w.Peer || p.closed || r.detached || len(r.free) <= r.following {
		return false
	}
	if r.head != r.tail.Load() { // an earlier post has been published
		return false
	}
	c := p.r.conn
	if c == nil || p.r.head != nil {
		return false
	}
	s := &c.stage
	g, lead := s.cargo, s.leader
	if lead == nil || len(g.followers) == cap(g.followers) { // the next leader makes room: see note
		return false
	}
	each := 0
	if x.Result != nil {
		each = 8
	}
	if f := lead.f; f.ring != r || f.Cookie != w.Cookie || f.Peer != w.Peer || g.each != each {
		return false
	}
	if !s.last.is(&w.kind) || !s.w.Extend(x.Offset, w.Operand) {
		return false
	}
	lead.followers++
	n := len(g.followers)
	g.followers = g.followers[:n+1]
	g.followers[n] = x
	r.following++
	return true
}

// Begin returns a submission to fill in and then to Submit, or nil when the operation has
// to go through the ring.
func (e *Engine) Begin(r *Ring) *Submission {
	if r.origin == nil || r.detached {
		return nil
	}
	e.fresh = false
	if r.head != r.tail.Load() { // what was published before goes first
		if e.Collect(r); r.head != r.tail.Load() {
			return nil
		}
	}
	if !r.room() {
		return nil
	}
	r.begun = r.begin()
	r.begun.clear()
	return &r.begun.Submission
}

// Submit takes the submission that Begin returned last.
func (e *Engine) Submit(r *Ring) { e.take(r.begun) }
