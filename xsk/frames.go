// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"math/bits"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// FramePool keeps account of a run of chunks: which are free, which the caller
// holds, and which are in flight (submitted to a TX ring, not completed).
//
//	          Get               Sent
//	free ───────────▶ held ───────────▶ in flight
//	  ▲  ◀─────────── Put                   │
//	  └──────────────── Reap ◀──────────────┘
//
// It trusts no completion: kernels before 6.18 can publish a wrong address when
// sockets share a completion ring in copy mode (one frame completes twice,
// another never). An address that is not in flight is refused and counted. Since
// the number of completions is right even then, the pool knows when all have
// arrived, and takes back whatever is still marked in flight at that moment: no
// frame is lost.
//
// A pool may lend several adjacent chunks at a time, a slab, for packets that take
// several descriptors (Config.MultiBuffer): Get and Put are about slabs then, and a slab
// comes free when each descriptor of its packet has completed. See NewSlabPool.
//
// A pool serves one completion ring and has its owner thread. Chunks that wait in
// the Fill ring or are being read may come from a pool as well: they are held.
type FramePool struct {
	base  uint64 // address of the first chunk
	shift uint   // log2 of the size of what Get lends: a chunk or a slab
	state []frameState
	free  []uint64 // addresses, a stack: the chunk used last is warm in the cache
	// pending has the chunks of each slab that have not completed, a bit for each; nil if
	// Get lends single chunks
	pending []uint32
	size    uint // log2 of the chunk size

	inFlight int    // frames in state inFlight: chunks or slabs
	owed     int    // completions that the kernel has still to publish
	bogus    uint64 // completions refused
	rescued  uint64 // frames taken back without a completion
}

type frameState uint8

const (
	frameFree frameState = iota
	frameHeld
	frameInFlight
)

// NewFramePool makes a pool of count chunks of chunkSize bytes (a power of two),
// the first at address base. All are free. UMEM.Pool is the usual way to one.
func NewFramePool(base uint64, count, chunkSize int) (*FramePool, error) {
	return NewSlabPool(base, count, 1, chunkSize)
}

// maxSlab is how many chunks a slab may have.
const maxSlab = 32

// NewSlabPool makes a pool of count slabs, each of so many chunks of chunkSize bytes
// (both powers of two), the first at address base. All are free. UMEM.SlabPool is the
// usual way to one.
func NewSlabPool(base uint64, count, chunks, chunkSize int) (*FramePool, error) {
	if count <= 0 || chunkSize <= 0 || bits.OnesCount(uint(chunkSize)) != 1 || base%uint64(chunkSize) != 0 {
		return nil, errno.Refuse(ErrConfig,
			"xsk: frame pool of %d chunks of %d bytes at %#x: want at least one chunk, a "+
				"power-of-two size and an aligned base",
			count, chunkSize, base)
	}
	if chunks <= 0 || chunks > maxSlab || bits.OnesCount(uint(chunks)) != 1 {
		return nil, errno.Refuse(ErrConfig, "xsk: slabs of %d chunks: want a power of two up to %d", chunks, maxSlab)
	}
	p := &FramePool{
		base:  base,
		shift: uint(bits.TrailingZeros(uint(chunks * chunkSize))),
		size:  uint(bits.TrailingZeros(uint(chunkSize))),
		state: make([]frameState, count),
		free:  make([]uint64, count),
	}
	if chunks > 1 {
		p.pending = make([]uint32, count)
	}
	for i := range p.free {
		// The order is reversed, so that Get begins with the lowest address.
		p.free[i] = base + uint64(count-1-i)<<p.shift
	}
	return p, nil
}

// index returns the chunk that addr lies in, or -1 if it is not in this pool.
func (p *FramePool) index(addr uint64) int {
	if i := (addr - p.base) >> p.shift; addr >= p.base && i < uint64(len(p.state)) {
		return int(i)
	}
	return -1
}

// move moves the chunk of addr from one state to another, or reports false.
func (p *FramePool) move(addr uint64, from, to frameState) bool {
	i := p.index(addr)
	if i < 0 || p.state[i] != from {
		return false
	}
	p.state[i] = to
	if to == frameFree {
		p.free = append(p.free, p.base+uint64(i)<<p.shift)
	}
	return true
}

// Get takes a free chunk and returns the address of its first byte; false when
// none is free.
func (p *FramePool) Get() (addr uint64, ok bool) {
	n := len(p.free) - 1
	if n < 0 {
		return 0, false
	}
	addr = p.free[n]
	p.free = p.free[:n]
	p.state[p.index(addr)] = frameHeld
	return addr, true
}

// Put gives back a held chunk that was not sent, by any address within it. It
// reports false, and does nothing, if the chunk is not held.
func (p *FramePool) Put(addr uint64) bool { return p.move(addr, frameHeld, frameFree) }

// Sent records that a descriptor for the held chunk is about to be submitted. Call
// it once for each descriptor, before Submit. It reports false, and does nothing,
// if the chunk is not held: such a descriptor must not be submitted.
func (p *FramePool) Sent(addr uint64) bool {
	if !p.move(addr, frameHeld, frameInFlight) {
		return false
	}
	p.inFlight++
	p.owed++
	return true
}

// SentSlab is Sent for a slab whose first n chunks have a descriptor each: 1 to as many
// as there are.
func (p *FramePool) SentSlab(addr uint64, n int) bool {
	if !p.Sent(addr) {
		return false
	}
	if p.pending != nil {
		p.pending[p.index(addr)] = 1<<uint(n) - 1
		p.owed += n - 1
	}
	return true
}

// Reap consumes up to limit completions and returns how many chunks came free.
func (p *FramePool) Reap(c *Consumer[uint64], limit int) int {
	before := len(p.free)
	n := c.Peek(limit)
	for i := range n {
		p.Complete(c.Get(i))
	}
	c.Release(n)
	return len(p.free) - before
}

// Complete records one address from a completion ring. It reports false if that
// frame is not in flight; the completion is counted as bogus then.
func (p *FramePool) Complete(addr uint64) bool {
	ok := true
	switch {
	case p.pending != nil:
		ok = p.completeSlab(addr)
	case p.move(addr, frameInFlight, frameFree):
		p.inFlight--
	default:
		ok = false
	}
	if !ok {
		p.bogus++
	}
	if p.owed > 0 {
		p.owed--
	}
	if p.owed == 0 && p.inFlight > 0 {
		// Every frame has been completed under some address; these are the
		// frames whose own address never came.
		p.rescued += uint64(p.Reclaim())
	}
	return ok
}

// completeSlab records that the chunk of addr has completed, and reports false if it was
// not in flight.
func (p *FramePool) completeSlab(addr uint64) bool {
	i := p.index(addr)
	if i < 0 {
		return false
	}
	bit := uint32(1) << ((addr - p.base) >> p.size & (1<<(p.shift-p.size) - 1))
	if p.state[i] != frameInFlight || p.pending[i]&bit == 0 {
		return false
	}
	if p.pending[i] &^= bit; p.pending[i] == 0 {
		p.move(addr, frameInFlight, frameFree)
		p.inFlight--
	}
	return true
}

// Reclaim takes back every frame in flight and returns their number. It is for
// frames that will never be completed: those of a closed socket, or descriptors
// that the kernel refused (Statistics.TXInvalidDescs).
func (p *FramePool) Reclaim() int {
	n := p.inFlight
	for i, s := range p.state {
		if s == frameInFlight {
			p.move(p.base+uint64(i)<<p.shift, frameInFlight, frameFree)
		}
	}
	p.inFlight, p.owed = 0, 0
	return n
}

// Free is the number of chunks that Get can hand out.
func (p *FramePool) Free() int { return len(p.free) }

// InFlight is the number of chunks sent and not completed.
func (p *FramePool) InFlight() int { return p.inFlight }

// Held is the number of chunks that the caller holds.
func (p *FramePool) Held() int { return len(p.state) - len(p.free) - p.inFlight }

// Bogus is the number of completions refused so far: addresses outside the
// pool, or of frames that were not in flight. It stays 0 on a correct kernel.
func (p *FramePool) Bogus() uint64 { return p.bogus }

// Rescued is the number of frames taken back without a completion of their own.
func (p *FramePool) Rescued() uint64 { return p.rescued }
