// SPDX-License-Identifier: Apache-2.0

package engine

import "github.com/xdpfab/xdpfab/internal/wire"

// Pieces are the operands and the result of an operation whose elements lie in several
// buffers of the caller, each of whole elements. A list that is empty stands for the
// buffer in the submission. All must stay untouched until completion.
type Pieces struct {
	Buf, Compare, Result [][]byte
}

// SetPieces is SetOperands for an operation with parts in pieces: operand and
// compare are those that do not. When it returns true, the pieces of the operands may be
// used again.
func (s *Submission) SetPieces(p *Pieces, operand, compare []byte) (copied bool) {
	if len(p.Result) > 0 {
		s.Flags |= FlagPieces
		s.Pieces = p
	}
	if len(operand)+total(p.Buf)+len(compare)+total(p.Compare) <= int(s.InlineRoom()) {
		n := gather(s.Inline[:], operand, p.Buf)
		gather(s.Inline[n:], compare, p.Compare)
		return true
	}
	s.Flags |= FlagOutside | FlagPieces
	s.Operand, s.Compare, s.Pieces = operand, compare, p
	return false
}

// total returns the length of the pieces taken together.
func total(list [][]byte) (n int) {
	for _, b := range list {
		n += len(b)
	}
	return n
}

// gather copies what lies in one buffer or in pieces, and returns its length.
func gather(to, whole []byte, list [][]byte) int {
	n := copy(to, whole)
	for _, b := range list {
		n += copy(to[n:], b)
	}
	return n
}

// at returns the n bytes from a place on of the buffers taken together, or as many of
// them as lie in one buffer.
func at(list [][]byte, place, n uint64) []byte {
	for _, b := range list {
		if size := uint64(len(b)); place < size {
			return b[place:min(place+n, size)]
		} else {
			place -= size
		}
	}
	return nil
}

// given returns the operand and the compare operand of the next elements, of count at
// most: of those that lie in one piece of either. It returns their number, which is 0 if
// the pieces are too short.
func (f *flight) given(count uint32) (operand, compare []byte, n uint32) {
	size := uint64(wire.ElemSize(f.Datatype))
	first, rest := f.page()
	count = uint32(min(uint64(count), rest))
	place, length := (f.sent-first)*size, uint64(count)*size
	operand, compare = f.operands()
	if f.Flags&FlagPieces == 0 || f.Flags&FlagOutside == 0 {
		if len(operand) > 0 {
			operand = operand[place : place+length]
		}
		if len(compare) > 0 {
			compare = compare[place : place+length]
		}
		return operand, compare, count
	}
	if f.Opcode == wire.OpRead {
		return nil, nil, count
	}
	operand = piece(f.Pieces.Buf, operand, place, length)
	if length = uint64(len(operand)); f.Verb == wire.VerbCompare {
		compare = piece(f.Pieces.Compare, compare, place, length)
		length = uint64(len(compare))
		operand = operand[:length]
	}
	return operand, compare, uint32(length / size)
}

// gathered returns the next bytes of a write, count at most, of which given has found
// only those at hand in one piece: if they do not fill a frame, a copy of as many as do.
// So that a part ends at a word of memory, wherever a piece ends.
func (e *Engine) gathered(f *flight, given []byte, count uint32) ([]byte, uint32) {
	if len(given) >= e.cfg.MTU {
		return given, uint32(len(given))
	}
	if e.gather == nil {
		e.gather = make([]byte, e.cfg.MTU)
	}
	to := e.gather[:min(uint64(count), uint64(len(e.gather)))]
	n := 0
	for n < len(to) {
		b := at(f.Pieces.Buf, f.sent+uint64(n), uint64(len(to)-n))
		if len(b) == 0 {
			break // the poster has changed the list too early
		}
		n += copy(to[n:], b)
	}
	return to[:n], uint32(n)
}

// piece is at for a list that may be empty: then all lies in whole. The
// poster may have emptied the list too early: then there is nothing.
func piece(list [][]byte, whole []byte, place, n uint64) []byte {
	if len(list) > 0 {
		return at(list, place, n)
	}
	size := uint64(len(whole))
	return whole[min(place, size):min(place+n, size)]
}

// store puts a value into the result, from a place on.
func (f *flight) store(place int, value []byte) {
	if f.Flags&FlagStream != 0 {
		f.storePart(place, value)
		return
	}
	if f.Flags&FlagPieces == 0 || len(f.Pieces.Result) == 0 {
		result := f.result()
		copy(result[min(place, len(result)):], value)
		return
	}
	for len(value) > 0 {
		to := at(f.Pieces.Result, uint64(place), uint64(len(value)))
		if len(to) == 0 {
			return
		}
		n := copy(to, value)
		value, place = value[n:], place+n
	}
}

// whatCame returns a copy of the result as far as it has arrived.
func (f *flight) whatCame() (all []byte) {
	if f.Flags&FlagPieces == 0 || len(f.Pieces.Result) == 0 {
		return append(all, f.result()...)
	}
	for _, b := range f.Pieces.Result {
		all = append(all, b...)
	}
	return all
}
