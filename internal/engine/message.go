// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Messages have frames of their own. The parts of one follow each other in the session,
// so a message of which a part is under way is completed there or dropped, and no other
// begins before.

// message reports whether an operation is a message.
func (f *flight) message() bool { return f.Verb.Message() }

// suits reports whether the frame under construction may hold an operation.
func (s *stage) suits(f *flight) bool {
	return s.w.Ops() == 0 || (s.flags == wire.FlagMessages) == f.message()
}

// packMessage appends as much of a message as fits.
func (c *conn) packMessage(w *wire.RecordWriter, f *flight, frag *fragment) {
	switch features := c.ini.Features(); {
	case !features.Allow(wire.VerbSend):
		c.lack(f, Result{Outcome: NotExecuted, Reason: session.NoMessages})
		return
	case !features.Allow(f.Verb):
		c.lack(f, Result{Outcome: NotExecuted, Status: wire.StatusUnsupported})
		return
	case f.Verb.TaggedAtomic():
		c.packCombination(w, f, frag)
		return
	}
	m := wire.Message{
		Begins: f.sent == 0, Tagged: f.Verb == wire.VerbTagged, HasData: f.Flags&FlagData != 0,
		Match:  f.Flags&FlagMatch != 0,
		Length: f.count(), Offset: f.sent, Tag: f.Key, Data: f.Data, Source: c.r.origin.endpoint,
	}
	_, rest := f.page()
	part, ok := w.Message(&m, min(f.count()-f.sent, rest))
	if !ok {
		return
	}
	f.copyOut(part)
	f.sent += max(uint64(len(part)), 1)
	frag.count, frag.records = uint32(len(part)), 1
	c.stage.flags = wire.FlagMessages
	if c.message = f; f.whole() {
		c.message = nil
	}
}

// copyOut copies the next bytes of the message, which may lie in pieces. If the poster
// has emptied the pieces too early, what is missing is zero.
func (f *flight) copyOut(to []byte) {
	whole, _ := f.operands()
	if f.Flags&FlagPieces == 0 {
		first, _ := f.page()
		copy(to, whole[f.sent-first:])
		return
	}
	for place := f.sent; len(to) > 0; {
		b := piece(f.Pieces.Buf, whole, place, uint64(len(to)))
		if len(b) == 0 {
			clear(to)
			return
		}
		n := copy(to, b)
		to, place = to[n:], place+uint64(n)
	}
}

// abandoned records that an operation has left the queue. If a part of it, a message, is
// under way, the target has to drop that.
func (r *remote) abandoned(f *flight) {
	if c := r.conn; c != nil && c.message == f {
		c.message, c.severed = nil, f.sent
		r.list()
	}
}

// endMessage has the target drop a message that is partly under way, and which has left
// the queue. It returns false if the frame has no room for that.
func (c *conn) endMessage() bool {
	s := &c.stage
	m := wire.Message{Offset: c.severed, Drop: true}
	if s.w.Ops() > 0 && s.flags != wire.FlagMessages {
		return false
	}
	if _, ok := s.w.Message(&m, 0); !ok {
		return false
	}
	f := standIn(&flight{})
	f.pending = 1
	s.cargo.frags, s.cargo.each = append(s.cargo.frags, fragment{f: f, records: 1}), mixed
	s.flags, s.simple, s.last, s.leader = wire.FlagMessages, false, kind{}, nil
	c.severed = 0
	return true
}

// halve fails the message that the session is in the middle of, when the session ends:
// the next one cannot go on with it. It has not arrived and never will.
func (c *conn) halve(why session.Reason) {
	if f := c.message; f != nil {
		c.message = nil
		c.r.failWhere(Result{Outcome: NotExecuted, Reason: why}, func(x *flight) bool { return x == f })
	}
}

// packCombination appends a tagged atomic: a message of one record, which is in a frame
// as a whole. If the target tells how it ends, the record is the last one of the frame.
func (c *conn) packCombination(w *wire.RecordWriter, f *flight, frag *fragment) {
	m := wire.Message{
		Begins: true, Tagged: true, HasData: f.Flags&FlagData != 0, Match: f.Flags&FlagMatch != 0, Tag: f.Key,
		Data: f.Data, Source: c.r.origin.endpoint,
		Atomic: wire.TaggedAtomic{Form: f.Verb.Form(), Op: f.Opcode, Datatype: f.Datatype, Count: f.Count,
			Offset: f.Offset},
	}
	operand, compare, ok := w.TaggedAtomic(&m)
	if !ok {
		return // packOp fails it, if the frame is empty
	}
	whole, other := f.operands()
	if f.Flags&FlagPieces != 0 && f.Flags&FlagOutside != 0 {
		gather(operand, whole, f.Pieces.Buf)
		gather(compare, other, f.Pieces.Compare)
	} else {
		copy(operand, whole)
		copy(compare, other)
	}
	f.sent, frag.count, frag.records = uint64(f.Count), f.Count, 1
	c.stage.flags = wire.FlagMessages
}
