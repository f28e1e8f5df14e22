// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"encoding/binary"
	"math"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// An operation of any length goes through the arena part by part, and is one operation of
// the engine: its entry has engine.FlagStream, and each VerbFeed entry has the next
// elements. Each entry has one completion, so that what is promised is as for any other.
// The host has no copy of what is in the parts, but for their extents.

// stream is such an operation.
type stream struct {
	engine.Stream
	head   engine.Entry
	length uint64 // elements
	lo, hi uint64 // the part of the arena that its parts have been in
}

// begin posts an operation whose parts follow. It returns the cost, 0 if there is no room
// for it at present.
func (f *HostRing) begin(o *op, x *engine.Entry) (cost int) {
	const flags = engine.FlagStream | engine.FlagFence | engine.FlagExtents | engine.FlagData | engine.FlagMatch
	known := x.Verb.Array() || x.Verb == wire.VerbSend || x.Verb == wire.VerbTagged
	n := lengthOf(x)
	if !known || n == 0 || x.Flags&^flags != 0 || f.streams[x.Cookie] != nil {
		f.refuse(o, session.Alive, wire.StatusBadCount)
		return engine.EntryCost
	}
	s := f.eng.Begin(o.peer.Ring)
	if s == nil {
		return 0
	}
	s.Entry = *x
	s.Cookie, s.Peer, s.Context, s.Result = 0, o.peer.Peer.ID(), o, nil
	o.stream, o.more = &stream{Stream: engine.Stream{Released: f.released, Elements: n}, head: *x, length: n,
		lo: uint64(len(f.segment.arena))}, true
	s.SetStream(&o.stream.Stream)
	f.streams[o.tag] = o
	f.use()
	f.eng.Submit(o.peer.Ring)
	return engine.EntryCost
}

// lengthOf returns the number of elements of an operation that comes part by part. Where
// that does not fit in Count, which is 0 then, it is in place of the operands: of a
// message or a transfer, and 0 means that the entry is none.
func lengthOf(x *engine.Entry) uint64 {
	if x.Count > 0 || x.Verb.Atomic() {
		return uint64(x.Count)
	}
	if n := binary.LittleEndian.Uint64(x.Inline[:]); n > math.MaxUint32 && n <= math.MaxInt64 {
		return n
	}
	return 0
}

// next takes the next part of an operation. One that ended meanwhile needs none.
func (f *HostRing) next(x *engine.Entry) (cost int) {
	of := f.streams[x.Key]
	o := f.free[len(f.free)-1]
	o.tag, o.peer = x.Cookie, nil
	if of == nil {
		f.use()
		f.write(o, &unfed)
		f.unshown = true
		return engine.EntryCost
	}
	s := of.stream
	e := s.head
	e.Count, e.Inline, e.Flags = x.Count, x.Inline, e.Flags&engine.FlagExtents|engine.FlagOutside
	in, ok := f.check(&e)
	if !ok || e.Count == 0 || uint64(e.Count) > s.length-s.Fed() {
		f.refuse(o, session.Alive, wire.StatusBadCount)
		f.endParts(of)
		return engine.EntryCost + len(f.ops)
	}
	p := &engine.Part{Context: o, Count: e.Count, Operand: in.operand, Compare: in.compare, Result: in.result}
	p.Extents = make([]mr.Extent, len(in.extents)/extentLen)
	copy(bytesOf(p.Extents), in.extents)
	o.list, o.more = uint64(len(in.extents)), true
	f.lists.bytes += o.list
	at := placesOf(&e)
	s.lo, s.hi = min(s.lo, at.Operand), max(s.hi, at.Result+uint64(len(in.result)))
	f.use()
	s.Feed(p)
	return e.Cost() + len(in.extents)
}

// unfed completes a part that no operation has taken.
var unfed = engine.Completion{Outcome: engine.NotExecuted, Reason: session.ClosedHere}

// endParts ends an operation that gets no further part.
func (f *HostRing) endParts(o *op) {
	if o != nil {
		o.peer.Peer.Cancel(o)
	}
}

// released completes a part that was taken.
func (f *HostRing) released(p *engine.Part) {
	f.write(p.Context.(*op), &engine.Completion{Outcome: engine.Success, Length: uint64(len(p.Result))})
}

// opEnded is called when an operation has completed. Its parts that are left complete as
// well, unless results may still come into them.
func (f *HostRing) opEnded(o *op, kept bool) {
	if !o.more || o.stream == nil {
		return
	}
	delete(f.streams, o.tag)
	if !kept || !o.stream.head.Verb.Returns() {
		f.drop(o)
	}
}

// drop completes the parts that are left of an operation which ended, those that have
// come to be known with their results.
func (f *HostRing) drop(o *op) {
	for _, p := range o.stream.Parts() {
		part := p.Context.(*op)
		if part.ready == nil {
			part.ready = &unfed
		}
		f.write(part, part.ready)
	}
	o.stream.Clear()
}

// spread puts the results of an operation whose outcome has become known where its parts
// have their places.
func (o *op) spread() {
	if o.stream == nil || o.data == nil || o.outcome.Outcome != engine.Success {
		return
	}
	data := o.data
	for _, p := range o.stream.Parts() {
		n := copy(p.Result, data)
		data = data[n:]
		p.Context.(*op).ready = &engine.Completion{Outcome: engine.Success, Length: uint64(n)}
	}
	o.data = nil
}
