// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Region is memory registered under a key. How a peer describes it is an
// xdpfab.RemoteRegion. Its description is fixed before it is published.
type Region struct {
	key    uint64
	data   []byte
	base   uint64 // the offset that peers use for the first byte: 0 or its virtual address
	addr   uint64 // virtual address of the first byte
	access Access
	name   string
	born   uint32 // the incarnation
	auth   AuthKey
	mem    *Memory
	table  *Table

	observer    atomic.Pointer[Observer]
	applied     tally
	withdrawing func()    // or nil
	began       sync.Once // calls it
	withdrawn   func()    // or nil
	told        sync.Once // calls it

	closed  atomic.Bool // set under table.mu when the key is removed
	holders []inside    // readers in a burst at that moment; written once, under table.mu
}

// Key returns the key by which peers name the region.
func (r *Region) Key() uint64 {
	if r == nil {
		return 0
	}
	return r.key
}

// Incarnation tells this registration from every other one, of this life of the process
// or another, even if they have the same key. It is random, and never 0.
func (r *Region) Incarnation() uint32 { return r.born }

// Len returns the size in bytes.
func (r *Region) Len() int {
	if r == nil {
		return 0
	}
	return len(r.data)
}

// Base returns the offset that peers use for the first byte: 0, or its address if the
// region was registered with Virtual.
func (r *Region) Base() uint64 { return r.base }

// Access returns the rights that the region grants.
func (r *Region) Access() Access { return r.access }

// Name returns the name in the catalogue, empty for none.
func (r *Region) Name() string {
	if r == nil {
		return ""
	}
	return r.name
}

// Memory returns the Memory that the region is part of.
func (r *Region) Memory() *Memory {
	if r == nil {
		return nil
	}
	return r.mem
}

// Bytes returns the memory of the region, for the owner's use; nil once the region is
// closed.
//
// Peers may write to it at any moment. While they do, the owner reads by [Region.Uint64]
// and the like. It may read plain bytes once it knows that they are written and nobody
// writes more: when it has seen the word of the Peer.WriteSignal that wrote them, when it
// has received a message that the writer sent after its Peer.Write had returned, or, at a
// counter bound by Domain.BindRegion, when it has waited for the write. Likewise, bytes
// that the owner has written plainly are whole for a peer that reads after a message, or
// a word stored by [Region.Uint64], told it so.
func (r *Region) Bytes() []byte {
	if r.none() || r.closed.Load() {
		return nil
	}
	return r.data
}

// String names the region in messages.
func (r *Region) String() string {
	if r == nil {
		return "none"
	}
	if r.name != "" {
		return fmt.Sprintf("%q, key %#x", r.name, r.key)
	}
	return fmt.Sprintf("key %#x", r.key)
}

// Resolve returns n bytes at offset, if the region grants the rights need (checked
// first), if total bytes from offset on, the first n wanted now, lie inside, and if the
// address is a multiple of align, a power of two (or less than 2 for any). Offsets count
// from Base. No values, however large, overflow.
func (r *Region) Resolve(offset, n, total uint64, align int, need Access) ([]byte, Fault) {
	if r.access&need != need {
		return nil, FaultAccess
	}
	at, size := offset-r.base, uint64(len(r.data)) // an offset below base wraps around, beyond any size
	if total = max(total, n); total > size || at > size-total {
		return nil, FaultBounds
	}
	if align > 1 && (r.addr+at)&uint64(align-1) != 0 {
		return nil, FaultAlignment
	}
	return r.data[at : at+n : at+n], FaultNone
}

// ResolveEach is Resolve for n bytes, at least one, at each of many offsets; it checks
// only once what they have in common. It returns all bytes of the region, which the
// offsets index, or nil if one of them is refused or the region's offsets do not count
// from 0: then Resolve tells which offset is refused, and why.
func (r *Region) ResolveEach(offsets []uint32, n, align int, need Access) []byte {
	var most, low uint32
	for _, at := range offsets {
		most, low = max(most, at), low|at
	}
	if r.access&need != need || r.base != 0 || n > len(r.data) || uint64(most) > uint64(len(r.data)-n) {
		return nil
	}
	// If the first byte is aligned, an offset is a multiple of align exactly if its
	// address is.
	if align > 1 && (r.addr|uint64(low))&uint64(align-1) != 0 {
		return nil
	}
	return r.data
}

// Close deregisters the region: peers get a key error from now on, and when Close returns
// no operation is in flight on it. It waits for the readers that are inside a burst, so
// it must not be called from inside one. Closing again is allowed, and waits for the same
// bursts.
func (r *Region) Close() error { return r.CloseContext(context.Background()) }

// CloseContext is Close with a limit. If the context ends first, it returns the context's
// error: the key is gone, but the memory stays held until another Close returns nil.
func (r *Region) CloseContext(ctx context.Context) error {
	if r.none() {
		return r.errNone()
	}
	if r.withdrawing != nil {
		r.began.Do(r.withdrawing)
	}
	busy := r.table.unpublish(r)
	r.notifyUnwatched() // nothing changes the region any more but what is in flight
	if err := quiesce(ctx, busy); err != nil {
		return failed("region %v is deregistered, but operations on it are still in flight: %w; close it again "+
			"to wait for them", r, err)
	}
	if r.withdrawn != nil {
		r.told.Do(r.withdrawn)
	}
	r.notifyClosed()
	r.mem.release(r)
	return nil
}

// Extent is a part of a region as a peer names it (struct fi_rma_ioc of fi_atomic(3)).
type Extent struct {
	Offset uint64 // bytes, or a virtual address for a region registered with Virtual
	Key    uint64
	Count  uint32 // elements, at least one
}

// Fault is why Region.Resolve refuses. FaultNone, the zero value, says that it does not.
type Fault uint8

// The faults, in the order of the checks.
const (
	FaultNone      Fault = iota
	FaultAccess          // a right is missing
	FaultBounds          // not wholly inside the region
	FaultAlignment       // address not a multiple of the alignment
)

// String returns the fault in words.
func (f Fault) String() string {
	if names := [...]string{"no fault", "no access", "out of bounds", "misaligned"}; int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("Fault(%d)", uint8(f))
}

// Access is a set of rights that a Region grants to peers.
type Access uint8

// The rights. An atomic without a result needs RemoteWrite, a read RemoteRead, every
// other atomic with a result both.
const (
	RemoteRead  Access = 1 << 0
	RemoteWrite Access = 1 << 1

	allAccess = RemoteRead | RemoteWrite
)

// String returns the rights as "r", "w", "rw" or "-".
func (a Access) String() string { return [...]string{"-", "r", "w", "rw"}[a&allAccess] }
