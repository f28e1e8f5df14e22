// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync/atomic"
)

// Ring is a submission queue: many goroutines post, one engine takes. It is a
// bounded queue after Vyukov: each cell's seq says whose turn it is.
//
//	seq == ticket            holds a free entry for the poster that drew ticket
//	seq == ticket+1          holds a published one, until the engine takes it
//	seq == ticket+len(cells) holds a free one again, for the next lap
//
// An entry stays outside the cells from being taken until its operation completes,
// so the number of entries bounds the operations outstanding. Then it goes into the
// cell that has been empty for longest, whichever entry was there before: operations
// may complete in any order, and one that lasts holds up its own entry only.
type Ring struct {
	ops   []Op
	cells []cell
	mask  uint64
	tail  atomic.Uint64 // next ticket; written by posters
	_     [64]byte      // tail and what follows on cache lines of their own
	head  uint64        // next ticket to take; written by the engine only
	freed uint64        // next ticket whose cell gets an entry back, at most head; likewise
}

// cell holds an entry that is free or published.
type cell struct {
	seq atomic.Uint64
	op  *Op // written by the engine, before seq says that the entry is free
}

// maxRing is the most entries of a ring; each takes some 300 bytes.
const maxRing = 1 << 20

// NewRing returns a ring of size entries, a power of two.
func NewRing(size int) (*Ring, error) {
	if size < 2 || size > maxRing || size&(size-1) != 0 {
		return nil, fmt.Errorf("submission queue of %d entries: want a power of two, 2..%d", size, maxRing)
	}
	r := &Ring{ops: make([]Op, size), cells: make([]cell, size), mask: uint64(size - 1)}
	for i := range r.ops {
		r.ops[i].ring = r
		r.cells[i].op = &r.ops[i]
		r.cells[i].seq.Store(uint64(i))
	}
	return r, nil
}

// Claim returns a free entry to fill, or nil when as many operations are
// outstanding as the ring has entries. Publish must follow.
func (r *Ring) Claim() *Op {
	for {
		t := r.tail.Load()
		c := &r.cells[t&r.mask]
		switch d := int64(c.seq.Load() - t); {
		case d < 0:
			return nil
		case d == 0 && r.tail.CompareAndSwap(t, t+1):
			op := c.op
			op.ticket = t
			op.reset()
			return op
		}
	}
}

// Publish hands the entry to the engine.
func (op *Op) Publish() { op.ring.cells[op.ticket&op.ring.mask].seq.Store(op.ticket + 1) }

// next takes the oldest published entry, or returns nil.
func (r *Ring) next() *Op {
	if !r.pending() {
		return nil
	}
	op := r.cells[r.head&r.mask].op
	r.head++
	return op
}

// pending reports whether an entry is published.
func (r *Ring) pending() bool { return r.cells[r.head&r.mask].seq.Load() == r.head+1 }

// release makes a completed entry free for the next lap.
func (r *Ring) release(op *Op) {
	// Drop what the garbage collector would otherwise keep for the caller.
	op.Operand, op.Compare, op.Result, op.Context, op.Extents = nil, nil, nil, nil, nil
	if cap(op.own) > keptExtents {
		op.own = nil
	}
	c := &r.cells[r.freed&r.mask]
	c.op = op
	c.seq.Store(r.freed + uint64(len(r.cells)))
	r.freed++
}

// Empty reports whether every entry is free: nothing published, nothing in
// flight. Engine's thread only.
func (r *Ring) Empty() bool { return r.freed == r.tail.Load() }

// Abandon gives back an entry that was claimed but cannot be filled: the engine
// passes over it.
func (op *Op) Abandon() {
	op.Peer, op.Done = nil, nil
	op.Publish()
}
