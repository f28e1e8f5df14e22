// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// An operation that is longer than part goes through a window of the arena: VerbFeed
// entries follow its own entry, each with the next elements, and the completion of each
// frees its half of the window. The window is the operation's until it completes, so that
// operations behind it cannot take away what it needs to go on.

// part is the most bytes that one entry takes of an operation.
const part = 1 << 20

// leastWindow is the length of the shortest window, bytes: that of an operation for which
// a crowded arena has no more.
const leastWindow = 8 << 10

// window is the part of the arena that such an operation has, in halves.
type window struct {
	at, half int // offset and length of a half, bytes
	tags     [2]uint32
	busy     [2]bool

	extent int    // index of the first extent that has elements to hand over
	within uint32 // elements of it that have been handed over
}

// Begin implements engine.GuestRing.
func (c *GuestRing) Begin(tag, peer uint32, s *engine.Submission) bool {
	if !c.room() {
		return false
	}
	b := &c.held[tag]
	*b = block{}
	n := min(2*part, c.space.largest()/4)
	for ; !c.take(b, n); n /= 2 {
		if n < 2*leastWindow {
			return false
		}
	}
	b.window = &window{at: b.at, half: b.len / 2}
	if s.Verb.Returns() {
		b.resultLen = b.len // if its outcome is unknown, results may still come
	}
	x := &c.segment.entries[c.posted&c.mask()]
	*x = s.Entry
	x.Cookie, x.Peer = uint64(tag), engine.PeerID(peer)
	x.Flags &^= engine.FlagPieces | engine.FlagOutside
	x.Flags |= engine.FlagStream
	c.posted++
	return true
}

// HostRing implements engine.GuestRing.
func (c *GuestRing) Feed(tag, of uint32, s *engine.Submission, first uint32) (count uint32) {
	w := c.held[of].window
	i := 0
	for i < len(w.busy) && w.busy[i] {
		i++
	}
	if i == len(w.busy) || !c.room() {
		return 0
	}
	at := w.at + i*w.half
	var list []mr.Extent
	e := engine.Entry{Verb: s.Verb, Opcode: s.Opcode, Datatype: s.Datatype, Flags: engine.FlagOutside}
	if s.Flags&engine.FlagExtents != 0 {
		list, e.Count = w.extents(s, s.Count-first)
	} else {
		e.Count = whole(s, s.Offset, first, s.Count-first, uint32((w.half-8)/perElement(s)))
	}
	operand, compare, result := e.Lens()
	operands := int(operand+compare+7) &^ 7
	results := at + operands + len(list)*extentLen
	s.CopyOperands(c.segment.arena[at:at+w.half], first, e.Count)
	copy(c.segment.arena[at+operands:], bytesOf(list))
	w.busy[i], w.tags[i] = true, tag
	c.held[tag] = block{result: results, resultLen: int(result), window: w}

	x := &c.segment.entries[c.posted&c.mask()]
	*x = engine.Entry{Cookie: uint64(tag), Key: uint64(of), Verb: VerbFeed, Count: e.Count}
	*placesOf(x) = places{Operand: uint64(at), Compare: uint64(at) + operand, Result: uint64(results),
		Extents: uint64(at + operands), ExtentCount: uint32(len(list))}
	c.posted++
	return e.Count
}

// perElement is how many bytes of a window an element takes.
func perElement(s *engine.Submission) int {
	one := s.Entry
	one.Count = 1
	operand, compare, result := one.Lens()
	return max(int(operand+compare+result), 1)
}

// whole returns how many of n elements from the first on make a part, at most so many.
// They begin at an offset. A part of a transfer ends where a word of memory ends, since
// words are not divided.
func whole(s *engine.Submission, offset uint64, first, n, most uint32) uint32 {
	if n <= most {
		return n
	}
	if s.Verb.Transfer() {
		most -= min(most, uint32(offset+uint64(first)+uint64(most))%8)
	}
	return most
}

// extents returns the extents of the next part, and its number of elements. The last one
// is as long as what is left of it, so that the target checks that whole. The operation
// has so many elements left. If the extents have fewer, since their owner has changed
// them too early, the part is one that the host refuses.
func (w *window) extents(s *engine.Submission, left uint32) (list []mr.Extent, count uint32) {
	each, size, room := perElement(s), uint64(wire.ElemSize(s.Datatype)), w.half-8
	for w.extent < len(s.Extents) && count < left {
		x := s.Extents[w.extent]
		if x.Count <= w.within {
			w.extent, w.within = w.extent+1, 0
			continue
		}
		most := max(room-extentLen, 0) / each
		n := min(whole(s, x.Offset, w.within, x.Count-w.within, uint32(most)), left-count)
		if n == 0 {
			break
		}
		x.Offset, x.Count = x.Offset+uint64(w.within)*size, x.Count-w.within
		list, count, room = append(list, x), count+n, room-extentLen-int(n)*each
		if w.within += n; n < x.Count {
			break
		}
	}
	return list, max(count, 1)
}

// EndParts implements engine.GuestRing.
func (c *GuestRing) EndParts(tag uint32) { c.note(engine.Entry{Verb: VerbSever, Key: uint64(tag)}) }

// completePart passes on the completion of such an operation or of a part of one, which
// had the block.
func (c *GuestRing) completePart(b *block, x *engine.Completion, life uint64,
	done func(tag uint32, c *engine.Completion, life uint64, result []byte)) {
	tag := uint32(x.Cookie)
	if b.len == 0 { // a part
		for i := range b.window.busy {
			if b.window.busy[i] && b.window.tags[i] == tag {
				b.window.busy[i] = false
			}
		}
		c.held[tag] = block{}
		done(tag, x, life, c.segment.arena[b.result:][:min(x.Length, uint64(b.resultLen))])
		return
	}
	if x.Flags&engine.CompletedOpen == 0 || b.resultLen == 0 {
		c.held[tag] = block{}
		c.space.put(uint64(b.at), b.len)
	}
	done(tag, x, life, nil)
}
