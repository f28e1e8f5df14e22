// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"math/bits"
	"sync/atomic"
)

// index is a hash table from key to region with open addressing and linear probing.
// Readers take no lock and never wait: a slot changes by one atomic store, from empty to
// a region, from a region to the tombstone, from the tombstone to a region. When too few
// empty slots are left the writer builds a new index and publishes it; readers may finish
// with the old one.
type index struct {
	shift uint8 // 64 minus the logarithm of the number of slots
	// slots are written by the goroutine that holds Table.mu. At least half of them are
	// empty, so probing is short.
	slots []atomic.Pointer[Region]
	used  int // slots that are not empty, tombstones included; guarded by Table.mu
	live  int // regions; guarded by Table.mu
}

// tombstone keeps a probe going past a region that was removed.
var tombstone = new(Region)

const minSlots = 16

// newIndex returns an index with room for n regions before it needs to be rebuilt.
func newIndex(n int) *index {
	slots := max(minSlots, 1<<bits.Len(uint(4*n-1))) // at most a quarter full at first
	return &index{shift: uint8(64 - bits.Len(uint(slots-1))), slots: make([]atomic.Pointer[Region], slots)}
}

// home is the slot where the search for a key begins. Users like consecutive or strided
// keys; two rounds of multiplication spread those as well as random ones.
func (x *index) home(key uint64) int {
	const golden = 0x9E3779B97F4A7C15 // 2^64 over the golden ratio
	h := key * golden
	return int((h ^ h>>32) * golden >> x.shift)
}

// find returns the region of that key, or nil.
func (x *index) find(key uint64) *Region {
	slots := x.slots
	mask := len(slots) - 1
	for i := x.home(key); ; i++ {
		r := slots[i&mask].Load()
		if r == nil {
			return nil
		}
		if r.key == key && r != tombstone {
			return r
		}
	}
}

// add adds a region whose key is not in the index, which has an empty slot to spare.
func (x *index) add(r *Region) {
	mask := len(x.slots) - 1
	for i := x.home(r.key); ; i++ {
		slot := &x.slots[i&mask]
		switch slot.Load() {
		case nil:
			x.used++
		case tombstone:
		default:
			continue
		}
		x.live++
		slot.Store(r)
		return
	}
}

// remove removes the region.
func (x *index) remove(r *Region) {
	mask := len(x.slots) - 1
	for i := x.home(r.key); ; i++ {
		slot := &x.slots[i&mask]
		switch slot.Load() {
		case nil:
			return
		case r:
			x.live--
			slot.Store(tombstone)
			return
		}
	}
}

// grown returns an index with room for one more region: x itself, or a new one with the
// same regions.
func (x *index) grown() *index {
	if 2*(x.used+1) <= len(x.slots) {
		return x
	}
	n := newIndex(x.live + 1)
	for i := range x.slots {
		if r := x.slots[i].Load(); r != nil && r != tombstone {
			n.add(r)
		}
	}
	return n
}
