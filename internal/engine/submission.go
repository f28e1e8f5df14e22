// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/mr"

// Submission is an entry, and what callers of the same process keep beside it, since it
// points: the side table. Another process has a registered buffer instead. Get one with
// [Engine.Begin] or [Ring.Claim], fill in what the operation has, and hand it over with
// [Engine.Submit] or [Submission.Publish].
type Submission struct {
	Context any    // for the completion; the engine makes nothing of it
	Result  []byte // the engine writes the result here before completion; nil for a completion's Inline
	Entry
	Outside
	cell *cell // of the ring that the submission lies in; nil if it lies in a flight
}

// Outside is what only long operations, and those on extents, have.
type Outside struct {
	// Operand and Compare hold Count elements each, with FlagOutside. Extents, with
	// FlagExtents, say where the elements are when they are not next to each other: Count
	// elements in all. All must stay untouched until completion.
	Operand []byte
	Compare []byte
	Extents []mr.Extent
	own     []mr.Extent // memory for copies of extents, used again and again
}

// clear prepares for another operation; what is not cleared every operation sets.
func (s *Submission) clear() { s.Cookie, s.Data, s.Incarnation, s.Flags = 0, 0, 0, 0 }

// SetOperands gives the operation its operands. Short ones are copied, so that the
// caller's memory is free again; it returns false when they were not, and then must stay
// untouched until completion.
func (s *Submission) SetOperands(operand, compare []byte) (copied bool) {
	if s.SetInline(operand, compare) {
		return true
	}
	s.Flags |= FlagOutside
	s.Operand, s.Compare = operand, compare
	return false
}

// SetInline copies short operands, or a name, into the entry; it returns false, and does
// nothing, when they are too long.
func (s *Submission) SetInline(operand, compare []byte) bool {
	if len(operand)+len(compare) > InlineLen {
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

// CopyExtents is as SetExtents, with a copy, so that the caller's memory is free again.
func (s *Submission) CopyExtents(extents []mr.Extent) {
	s.own = append(s.own[:0], extents...)
	s.SetExtents(s.own)
}

// keptExtents is for how many extents a submission keeps memory between operations.
const keptExtents = 64

// operands returns the operand and the compare operand.
func (s *Submission) operands() (operand, compare []byte) {
	if s.Flags&FlagOutside != 0 {
		return s.Operand, s.Compare
	}
	n, m := s.operandLens()
	return s.Inline[:n:n], s.Inline[n : n+m : n+m]
}

// Name returns the name that a VerbLookup asks for.
func (s *Submission) Name() []byte { return s.Inline[:min(s.Count, InlineLen)] }

// move takes over what lies beside another submission, which has nothing then.
func (s *Submission) move(from *Submission) {
	s.Entry, s.Context, s.Result = from.Entry, from.Context, from.Result
	if s.Flags&(FlagOutside|FlagExtents) != 0 {
		own := s.own
		s.Outside = from.Outside
		from.own = own
	}
	from.drop()
}

// drop lets go of the caller's memory.
func (s *Submission) drop() {
	s.Context, s.Result = nil, nil
	if s.Flags&(FlagOutside|FlagExtents) == 0 {
		return
	}
	s.Operand, s.Compare, s.Extents = nil, nil, nil
	if cap(s.own) > keptExtents {
		s.own = nil
	}
}
