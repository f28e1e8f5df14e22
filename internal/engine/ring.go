// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"sync/atomic"
)

// Ring is a submission queue: many goroutines post, one engine takes. It is a
// bounded queue after Vyukov: each entry's seq says whose turn it is.
//
//	seq == ticket          free for the poster that drew ticket
//	seq == ticket+1        published, for the engine
//	seq == ticket+len(ops) completed, free for the next lap
//
// Entries stay where they are until their operation completes, so the length of
// the ring bounds the operations outstanding.
type Ring struct {
	ops  []Op
	mask uint64
	tail atomic.Uint64 // next ticket; written by posters
	_    [48]byte      // tail and head on cache lines of their own
	head uint64        // written by the engine only
}

// maxRing is the most entries of a ring; each takes some 300 bytes.
const maxRing = 1 << 20

// NewRing returns a ring of size entries, a power of two.
func NewRing(size int) (*Ring, error) {
	if size < 2 || size > maxRing || size&(size-1) != 0 {
		return nil, fmt.Errorf("submission queue of %d entries: want a power of two, 2..%d", size, maxRing)
	}
	r := &Ring{ops: make([]Op, size), mask: uint64(size - 1)}
	for i := range r.ops {
		r.ops[i].ring = r
		r.ops[i].seq.Store(uint64(i))
	}
	return r, nil
}

// Claim returns a free entry to fill, or nil when as many operations are
// outstanding as the ring has entries. Publish must follow.
func (r *Ring) Claim() *Op {
	for {
		t := r.tail.Load()
		op := &r.ops[t&r.mask]
		switch d := int64(op.seq.Load() - t); {
		case d < 0:
			return nil
		case d == 0 && r.tail.CompareAndSwap(t, t+1):
			op.ticket = t
			op.reset()
			return op
		}
	}
}

// Publish hands the entry to the engine.
func (op *Op) Publish() { op.seq.Store(op.ticket + 1) }

// next takes the oldest published entry, or returns nil.
func (r *Ring) next() *Op {
	op := &r.ops[r.head&r.mask]
	if op.seq.Load() != r.head+1 {
		return nil
	}
	r.head++
	return op
}

// pending reports whether an entry is published.
func (r *Ring) pending() bool { return r.ops[r.head&r.mask].seq.Load() == r.head+1 }

// release makes a completed entry free for the next lap.
func (r *Ring) release(op *Op) {
	// Drop what the garbage collector would otherwise keep for the caller.
	op.Operand, op.Compare, op.Result, op.Context, op.Extents = nil, nil, nil, nil, nil
	if cap(op.own) > keptExtents {
		op.own = nil
	}
	op.seq.Store(op.ticket + uint64(len(r.ops)))
}

// Empty reports whether every entry is free: nothing published, nothing in
// flight. Engine's thread only.
func (r *Ring) Empty() bool {
	if r.head != r.tail.Load() {
		return false
	}
	for i := range r.ops {
		op := &r.ops[i]
		if s := op.seq.Load(); s&r.mask != uint64(i) {
			return false
		}
	}
	return true
}

// Abandon gives back an entry that was claimed but cannot be filled: the engine
// passes over it.
func (op *Op) Abandon() {
	op.Peer, op.Done = nil, nil
	op.Publish()
}
