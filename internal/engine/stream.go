// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Stream is where an operation has its operands, its extents and its result if they come
// part by part: another process hands on an operation that is longer than the memory that
// both share. The target sees one operation. While the next part is missing, the
// operation and those behind it to the same endpoint wait, and nothing else does. It
// belongs to the engine's thread.
type Stream struct {
	// Released is called with each part, the oldest first, whose memory the engine
	// needs no more: the part has been packed, and its result is in place. Parts that
	// are left when the operation completes are released by that.
	Released func(*Part)
	// Elements is how many bytes a message or a transfer has whose Count is 0, since
	// they do not fit in there.
	Elements uint64

	parts  []*Part // those that have not been released
	at     int     // index of the part that is packed next; len(parts) if it is missing
	opened bool    // the flight's buffers are those of that part
	fed    uint64  // elements of all parts up to now
	waits  *remote // has nothing to pack until something happens to the operation
}

// Part is the next elements of an operation, and where they lie.
type Part struct {
	Context                  any
	Count                    uint32 // elements
	Operand, Compare, Result []byte // of so many elements each, as far as the operation has them
	// Extents, with FlagExtents, begin with the first element of the part. The last
	// one may reach beyond the part: then the next part begins with the rest of it.
	Extents []mr.Extent

	first  uint64 // element
	stored int    // bytes of the result that are in place
}

// SetStream makes the operation one whose operands, extents and result come part by part.
func (s *Submission) SetStream(x *Stream) {
	s.Flags |= FlagStream | FlagOutside
	s.Stream = x
}

// Fed returns how many elements have come.
func (s *Stream) Fed() uint64 { return s.fed }

// Feed adds the next part. All parts together must have no more elements than the
// operation.
func (s *Stream) Feed(p *Part) {
	p.first = s.fed
	s.fed += uint64(p.Count)
	s.parts = append(s.parts, p)
	s.stir()
}

// stir has the engine look at the operation again, for which it waits.
func (s *Stream) stir() {
	if s.waits != nil {
		s.waits.list()
		s.waits = nil
	}
}

// Parts are those that have not been released, the oldest first.
func (s *Stream) Parts() []*Part { return s.parts }

// Clear forgets the parts, when the operation has completed.
func (s *Stream) Clear() { s.parts, s.at = nil, 0 }

// starved reports whether the next part of the operation is missing.
func (f *flight) starved() bool {
	return f.Flags&FlagStream != 0 && f.sent == f.Stream.fed && f.sent < f.elements() && !f.failed
}

// open takes up the part that is packed next, if it is there.
func (f *flight) open() {
	s := f.Stream
	if s.opened || s.at == len(s.parts) {
		return
	}
	p := s.parts[s.at]
	f.Operand, f.Compare, f.Extents = p.Operand, p.Compare, p.Extents
	f.extent, f.within, s.opened = 0, 0, true
}

// turn advances to the next part when all of one has been packed.
func (f *flight) turn() {
	s := f.Stream
	if s.opened && f.sent-s.parts[s.at].first >= uint64(s.parts[s.at].Count) {
		f.Operand, f.Compare, f.Extents, s.opened = nil, nil, nil, false
		s.at++
		f.release()
	}
}

// release releases the parts with which all is done.
func (f *flight) release() {
	s := f.Stream
	for s.at > 0 && s.parts[0].stored == len(s.parts[0].Result) {
		p := s.parts[0]
		s.parts = slices.Delete(s.parts, 0, 1)
		s.at--
		if s.Released != nil {
			s.Released(p)
			f.ring.toFlush()
		}
	}
}

// page returns the first element whose operand is at hand, and how many are from the next
// one to be packed on.
func (f *flight) page() (first, rest uint64) {
	if f.Flags&FlagStream == 0 {
		return 0, f.elements() - f.sent
	}
	s := f.Stream
	if !s.opened {
		return f.sent, 0
	}
	p := s.parts[s.at]
	return p.first, p.first + uint64(p.Count) - f.sent
}

// place returns the element of which the lower half is known, and which may be in one of
// the parts that have not been released.
func (f *flight) place(lower uint32) uint64 {
	if f.Flags&FlagStream == 0 || len(f.Stream.parts) == 0 {
		return uint64(lower)
	}
	oldest := f.Stream.parts[0].first
	return oldest + uint64(lower-uint32(oldest))
}

// storePart puts a value into the results of the parts, from a place on.
func (f *flight) storePart(place int, value []byte) {
	size := wire.ElemSize(f.Datatype)
	for _, p := range f.Stream.parts {
		from := place - int(p.first)*size
		if from < 0 || from >= len(p.Result) {
			continue
		}
		n := copy(p.Result[from:], value)
		p.stored += n
		if value, place = value[n:], place+n; len(value) == 0 {
			break
		}
	}
	f.release()
}

// apart returns a stream for the stand-in of a flight: results that are still to come go
// into memory of its own.
func (s *Stream) apart() *Stream {
	in := &Stream{Elements: s.Elements, fed: s.fed}
	for _, p := range s.parts {
		in.parts = append(in.parts,
			&Part{Count: p.Count, Result: slices.Clone(p.Result), first: p.first, stored: p.stored})
	}
	return in
}

// results returns what lies in the results of the parts that have not been released.
func (s *Stream) results() (all []byte) {
	for _, p := range s.parts {
		all = append(all, p.Result...)
	}
	return all
}
