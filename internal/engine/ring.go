// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Sink takes the completions of a ring's operations, on the engine's thread. It must not
// block, and must not keep its arguments, which are reused afterwards.
type Sink interface {
	// Complete is called once for each operation. later tells an Unknown outcome if it
	// becomes known, or is nil.
	Complete(s *Submission, c *Completion, later *Later)
	// Succeed is called instead, once for many, for operations that succeeded, and
	// whose values, if any, are in their result buffers. Their completions are alike, but
	// for Cookie and Source, which the sink may set in c as it likes.
	Succeed(done []*Submission, c *Completion)
	// Follow is called instead, after Complete of the leader, for operations that have
	// succeeded like it. The sink may change the leader's submission.
	Follow(leader *Submission, done []Follower, c *Completion)
	// Flush is called after one or more calls of the others, before the engine does
	// anything else for long.
	Flush()
}

// Ring is a submission queue: many goroutines post, one engine takes. It is a bounded
// queue after Vyukov: each cell's seq says who may use it next.
//
//	seq == ticket            free for the poster that drew ticket
//	seq == ticket+1          published, until the engine takes it
//	seq == ticket+len(cells) free again, for the next lap
//
// The engine copies an entry when it takes it, into a flight, and the cell is free. As
// many operations as the ring has cells can be in flight; any others that are published
// wait in the cells.
//
// A goroutine that holds the turn need not go through the cells: it fills in the flight
// itself, between [Engine.Begin] and [Engine.Submit]. That is the ordinary path. Either
// way the engine takes the operation by [Engine.take].
type Ring struct {
	cells []cell // nil for a ring that is posted to by Begin alone: see NewDirect
	mask  uint64
	tail  atomic.Uint64 // next ticket; written by posters
	_     [64]byte      // tail and what follows on cache lines of their own

	// The rest belongs to the engine's thread.
	*Flights
	head     uint64  // next ticket to take
	begun    *flight // handed out by Begin
	origin   *Origin // set by AddRing: whose peers the entries name
	last     *Peer   // the peer that was found last
	sink     Sink
	told     Completion // scratch; between two completions it describes a success
	detached bool       // by RemoveRing
	unsaid   bool       // the sink is to be flushed
}

// cell holds a submission that is free or published.
type cell struct {
	Submission
	seq atomic.Uint64
}

// NewRing returns a ring of size entries, a power of two, whose completions go to sink.
func NewRing(size int, sink Sink) (*Ring, error) {
	if size < 2 || size > maxFlights || size&(size-1) != 0 {
		return nil, fmt.Errorf("submission queue of %d entries: want a power of two, 2..%d", size, maxFlights)
	}
	r := &Ring{cells: make([]cell, size), mask: uint64(size - 1), Flights: newFlights(size), sink: sink}
	r.make(size)
	for i := range r.cells {
		r.cells[i].cell = &r.cells[i]
		r.cells[i].seq.Store(uint64(i))
	}
	return r, nil
}

// NewDirect returns a ring without cells, which is posted to on the engine's thread
// alone, by Begin and Submit. It has no flights of its own: all rings over the same ones
// can together have as many operations in flight as these are.
func NewDirect(over *Flights, sink Sink) *Ring { return &Ring{Flights: over, sink: sink} }

// Claim returns a free entry to fill, or nil when there is none. Publish or Release must
// follow. Any goroutine may call it.
func (r *Ring) Claim() *Submission {
	for {
		t := r.tail.Load()
		c := &r.cells[t&r.mask]
		switch d := int64(c.seq.Load() - t); {
		case d < 0:
			return nil
		case d == 0 && r.tail.CompareAndSwap(t, t+1):
			c.clear()
			return &c.Submission
		}
	}
}

// Publish hands a claimed entry to the engine.
func (s *Submission) Publish() { s.cell.seq.Store(s.cell.seq.Load() + 1) } // no other goroutine writes seq now

// Release gives back an entry that was claimed but cannot be filled: the engine
// passes over it.
func (s *Submission) Release() {
	s.Verb = 0
	s.Publish()
}

// pending reports whether an entry is published.
func (r *Ring) pending() bool { return r.cells[r.head&r.mask].seq.Load() == r.head+1 }

// collectable reports whether an entry is published that can be taken.
func (r *Ring) collectable() bool { return r.pending() && r.room() }

// next copies the oldest published entry to a flight and frees its cell. It returns nil
// for one that was abandoned.
func (r *Ring) next() *flight {
	c := &r.cells[r.head&r.mask]
	var f *flight
	if c.Verb != 0 {
		f = r.begin()
		f.move(&c.Submission)
	}
	r.head++
	c.seq.Store(r.head - 1 + uint64(len(r.cells)))
	return f
}

// begin takes a free flight. The caller knows that there is one.
func (r *Ring) begin() *flight {
	f := r.get()
	f.ring = r
	f.begin()
	return f
}

// find returns the peer that an entry names, or nil if there is none or it has been
// closed.
func (r *Ring) find(id PeerID) *Peer {
	r.last = r.origin.roster.find(id)
	return r.last
}

// complete tells the sink how an operation ended, and frees its flight.
func (r *Ring) complete(f *flight, res Result) {
	c := &r.told
	c.Outcome, c.Status, c.Reason = res.Outcome, res.Status, res.Reason
	r.tell(f, uint64(f.bytes()), f.Completed(), res.Later)
	c.Outcome, c.Status, c.Reason = Success, wire.StatusOK, session.Alive
}

// tell tells the sink of a completion, with the outcome that is in told, and frees the
// flight.
func (r *Ring) tell(f *flight, length uint64, flags uint8, later *Later) {
	r.announce(f, length, flags, later)
	r.recycle(f)
}

func (r *Ring) announce(f *flight, length uint64, flags uint8, later *Later) {
	c := &r.told
	c.Cookie, c.Source, c.Length, c.Flags = f.Cookie, f.Peer, length, flags
	if f.Result == nil {
		c.Inline = f.inline
		f.inline = [InlineResult]byte{} // zero while the flight is free: no value shows in a later failure
	}
	r.sink.Complete(&f.Submission, c, later)
	r.toFlush()
}

func (r *Ring) recycle(f *flight) {
	f.drop()
	if f.Flags&FlagExtents != 0 {
		r.keepList(f)
	}
	r.free = append(r.free, f)
}

// lead completes a leader and its followers, which succeeded, from their values of
// each bytes, 8 or 0.
func (r *Ring) lead(f *flight, followers []Follower, values []byte, each int) {
	if each > 0 {
		f.store(0, values[:each])
		for i := range followers {
			*followers[i].Result = [8]byte(values[8*i+8:])
		}
	}
	r.announce(f, uint64(f.bytes()), f.Completed(), nil)
	r.told.Inline = [InlineResult]byte{} // it may have the leader's value
	r.sink.Follow(&f.Submission, followers, &r.told)
	r.following -= len(followers)
	r.recycle(f)
}

// succeed completes simple operations that succeeded: it stores their values, each
// of that many bytes, 8 or 0, tells the sink, and frees the flights. It takes the first
// fragments, as many as are operations of this ring that are alike and have a buffer for
// the value, and returns their number.
func (r *Ring) succeed(frags []fragment, values []byte, each int) (n int) {
	length := frags[0].f.bytes()
	for ; n < len(frags) && n < len(r.batch); n++ {
		f := frags[n].f
		if f.ring != r || frags[n].followers > 0 || len(f.Result) != each || each == 0 && f.bytes() != length {
			break
		}
		if each == 8 {
			*(*[8]byte)(f.Result) = [8]byte(values[8*n:])
		}
		r.batch[n] = &f.Submission
	}
	if n == 0 {
		return 0
	}
	r.told.Length, r.told.Flags = uint64(length), frags[0].f.Completed()
	r.told.Inline = [InlineResult]byte{} // it may have the value of an earlier operation
	r.sink.Succeed(r.batch[:n], &r.told)
	for i := range frags[:n] {
		f := frags[i].f
		f.Context, f.Result = nil, nil
		r.free = append(r.free, f)
	}
	r.toFlush()
	return n
}

// toFlush has the sink flushed at the end of the round.
func (r *Ring) toFlush() {
	if !r.unsaid {
		r.unsaid = true
		e := r.origin.e
		e.unsaid = append(e.unsaid, r)
	}
}

// say flushes the sinks that were told something.
func (e *Engine) say() {
	for i, r := range e.unsaid {
		r.unsaid, e.unsaid[i] = false, nil
		r.sink.Flush()
	}
	e.unsaid = e.unsaid[:0]
}

// Size returns the number of entries.
func (r *Ring) Size() int { return len(r.cells) }

// Empty reports whether no operation is published or in flight. Engine's thread only.
func (r *Ring) Empty() bool {
	return r.head == r.tail.Load() && r.under() == 0 && r.following == 0
}

// Completer is a context that takes the completion of its operation; see [Sink].
type Completer interface {
	Complete(s *Submission, c *Completion, later *Later)
}

// Contexts is the sink of a ring whose operations have Completers as contexts.
type Contexts struct{}

// Complete implements Sink.
func (Contexts) Complete(s *Submission, c *Completion, later *Later) {
	s.Context.(Completer).Complete(s, c, later)
}

// Succeed implements Sink.
func (Contexts) Succeed(done []*Submission, c *Completion) {
	for _, s := range done {
		c.Cookie, c.Source = s.Cookie, s.Peer
		s.Context.(Completer).Complete(s, c, nil)
	}
}

// Follow implements Sink.
func (Contexts) Follow(s *Submission, done []Follower, c *Completion) {
	for i := range done {
		w := &done[i]
		s.Context, s.Offset, s.Result = w.Context, w.Offset, nil
		if w.Result != nil {
			s.Result = w.Result[:]
		}
		s.Context.(Completer).Complete(s, c, nil)
	}
}

// Flush implements Sink.
func (Contexts) Flush() {}
