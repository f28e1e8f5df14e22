// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Submission is an entry together with its side table: the pointers, which callers of the
// same process keep outside the entry. Another process has a registered buffer instead.
// Get a submission with [Engine.Begin] or [Ring.Claim], fill in what the operation has,
// and hand it over with [Engine.Submit] or [Submission.Publish].
type Submission struct {
	Context any    // for the completion; the engine does not interpret it
	Result  []byte // the engine writes the result here before completion; nil for a completion's Inline
	Entry
	Outside
	cell *cell // the cell of the ring that the submission lies in; nil if it lies in a flight
}

// Outside holds the parts that only long operations and operations on extents have.
type Outside struct {
	// Operand and Compare hold Count elements each, with FlagOutside. Extents, with
	// FlagExtents, say where the elements are when they are not next to each other: Count
	// elements in all. All must stay untouched until completion.
	Operand []byte
	Compare []byte
	Extents []mr.Extent
	Pieces  *Pieces      // with FlagPieces
	Stream  *Stream      // with FlagStream
	own     *[]mr.Extent // memory for copies of extents, used again and again; or nil
}

// clear prepares for another operation; every operation sets the fields that are not
// cleared.
func (s *Submission) clear() { s.Cookie, s.Data, s.Incarnation, s.Flags = 0, 0, 0, 0 }

// SetOperands gives the operation its operands. Short operands are copied, which releases
// the caller's memory. It returns false when they were not copied: then they must stay
// untouched until completion.
func (s *Submission) SetOperands(operand, compare []byte) (copied bool) {
	if s.SetInline(operand, compare) {
		return true
	}
	s.Flags |= FlagOutside
	s.Operand, s.Compare = operand, compare
	return false
}

// SetSignal gives a write with a signal its signal.
func (s *Submission) SetSignal(x *wire.Signal) { x.Put(s.Inline[InlineLen-wire.SignalLen:]) }

// signal returns the signal, encoded.
func (x *Entry) signal() []byte { return x.Inline[InlineLen-wire.SignalLen:] }

// SetInline copies short operands, or a name, into the entry; it returns false, and does
// nothing, when they are too long.
func (s *Submission) SetInline(operand, compare []byte) bool {
	if uint64(len(operand)+len(compare)) > s.InlineRoom() {
		return false
	}
	if len(operand) == 8 && len(compare) == 0 { // nearly always
		*(*[8]byte)(s.Inline[:]) = [8]byte(operand)
		return true
	}
	n := copy(s.Inline[:], operand)
	copy(s.Inline[n:], compare)
	return true
}

// SetExtents makes the operation one on extents.
func (s *Submission) SetExtents(extents []mr.Extent) {
	s.Flags |= FlagExtents
	s.Extents = extents
}

// CopyExtents is SetExtents with a copy, which releases the caller's memory.
func (s *Submission) CopyExtents(extents []mr.Extent) { copy(s.MakeExtents(len(extents)), extents) }

// MakeExtents is SetExtents with n extents of the submission's own, for the caller to
// fill in.
func (s *Submission) MakeExtents(n int) []mr.Extent {
	if s.own == nil {
		s.own = new([]mr.Extent)
	}
	if n > cap(*s.own) {
		room := n
		if n <= longList {
			room = 1 << bits.Len(uint(n-1))
		}
		*s.own = make([]mr.Extent, room)
	}
	*s.own = (*s.own)[:n]
	s.SetExtents(*s.own)
	return *s.own
}

// A submission keeps the memory for its extents between operations, if that has room for
// longList at most. No frame holds more words. A flight that keeps memory for more than
// shortList has to afford it: see [Flights].
const (
	shortList = 64
	longList  = 256
)

// operands returns the operand and the compare operand.
func (s *Submission) operands() (operand, compare []byte) {
	if s.Flags&FlagOutside != 0 {
		return s.Operand, s.Compare
	}
	n, m := s.operandLens()
	return s.Inline[:n:n], s.Inline[n : n+m : n+m]
}

// CopyOperands copies the operands of count elements from the first on, and behind them
// their compare operands, wherever they lie. It returns their length, each.
func (s *Submission) CopyOperands(to []byte, first, count uint32) (operand, compare int) {
	size := uint64(wire.ElemSize(s.Datatype))
	if s.Verb.Message() && !s.Verb.TaggedAtomic() {
		size = 1
	}
	place, length := uint64(first)*size, uint64(count)*size
	a, b := s.operands()
	p := &Pieces{}
	if s.Flags&FlagPieces != 0 && s.Flags&FlagOutside != 0 && s.Opcode != wire.OpRead {
		p = s.Pieces
	}
	operand = copyPart(to, a, p.Buf, place, length)
	return operand, copyPart(to[operand:], b, p.Compare, place, length)
}

// copyPart copies length bytes from a place on of what lies in one buffer or in pieces.
func copyPart(to, whole []byte, list [][]byte, place, length uint64) (n int) {
	for uint64(n) < length {
		b := piece(list, whole, place+uint64(n), length-uint64(n))
		if len(b) == 0 {
			break
		}
		n += copy(to[n:], b)
	}
	return n
}

// Name returns the name that a VerbLookup asks for.
func (s *Submission) Name() []byte { return s.Inline[:min(s.Count, InlineLen)] }

// move takes over the side table of another submission, which it leaves empty.
func (s *Submission) move(from *Submission) {
	s.Entry, s.Context, s.Result = from.Entry, from.Context, from.Result
	if s.Flags&besides != 0 {
		own := s.own
		s.Outside = from.Outside
		from.own = own
	}
	from.drop()
}

// drop releases the caller's memory.
func (s *Submission) drop() {
	s.Context, s.Result = nil, nil
	if s.Flags&besides == 0 {
		return
	}
	s.Operand, s.Compare, s.Extents, s.Pieces, s.Stream = nil, nil, nil, nil, nil
	if s.own != nil && cap(*s.own) > longList {
		s.own = nil
	}
}
