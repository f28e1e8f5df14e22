// SPDX-License-Identifier: Apache-2.0

package xsk

import "sync/atomic"

// Desc describes one frame in the RX and TX rings (struct xdp_desc).
type Desc struct {
	Addr    uint64 // offset in bytes from the start of the UMEM
	Len     uint32 // bytes
	Options uint32 // 0, or Continued
}

// Continued in Desc.Options says that the packet continues in the next
// descriptor (XDP_PKT_CONTD). It appears with Config.MultiBuffer only.
const Continued = 1

// needWakeup is XDP_RING_NEED_WAKEUP, in a ring's flags word.
const needWakeup = 1

// shared is the part of a ring that both sides see. Each index counts entries
// since the ring was made, modulo 2^32; the ring's size is a power of two, so the
// low bits are the slot. The entries between consumer and producer are the
// consumer's, the others the producer's.
//
// One side publishes entries by a store of an index after it is done with them;
// the other notices them by a load of it before it touches them. sync/atomic
// orders more than that (sequential consistency), and costs one exchange
// instruction for each burst.
type shared[T any] struct {
	producer *uint32 // written by the producing side alone
	consumer *uint32 // written by the consuming side alone
	flags    *uint32 // written by the kernel alone
	entries  []T     // length is a power of two, or 0 for a detached ring
}

// detached is the memory of a closed ring: empty and full at once, so that
// nothing is reserved, nothing is seen, and unmapped memory is not touched.
func detached[T any]() shared[T] {
	w := new([3]uint32)
	return shared[T]{producer: &w[0], consumer: &w[1], flags: &w[2]}
}

// size is the number of slots.
func (s *shared[T]) size() uint32 { return uint32(len(s.entries)) }

// slot returns the slot of index i. It is called only for rings that have
// slots.
func (s *shared[T]) slot(i uint32) *T { return &s.entries[i&uint32(len(s.entries)-1)] }

// needsWakeup reports whether the kernel sleeps on this ring.
func (s *shared[T]) needsWakeup() bool { return atomic.LoadUint32(s.flags)&needWakeup != 0 }

// Producer is this process's end of a ring that the kernel consumes: Fill
// (T is uint64, an address) or TX (T is Desc). One owner thread.
//
// A burst is Reserve, Set for each slot, Submit:
//
//	n := tx.Reserve(len(frames))
//	for i := range n {
//		tx.Set(i, frames[i])
//	}
//	tx.Submit(n)
type Producer[T any] struct {
	shared[T]
	next     uint32 // index of the first slot not submitted; equals *producer
	seen     uint32 // *consumer when last read; behind the kernel, never ahead
	reserved uint32 // slots from next on that Set may write
}

func newProducer[T any](s shared[T]) *Producer[T] {
	p := &Producer[T]{}
	p.attach(s)
	return p
}

// attach starts on the indices as they are, so that a ring may start anywhere.
func (p *Producer[T]) attach(s shared[T]) {
	*p = Producer[T]{shared: s, next: atomic.LoadUint32(s.producer), seen: atomic.LoadUint32(s.consumer)}
}

// Size is the number of slots; 0 once the socket is closed.
func (p *Producer[T]) Size() int { return int(p.size()) }

// Free is the number of slots that the kernel has given back and that are not
// submitted. A TX ring with Free equal to Size has been taken in whole.
func (p *Producer[T]) Free() int {
	p.seen = atomic.LoadUint32(p.consumer)
	return int(p.size() - (p.next - p.seen))
}

// Reserve makes up to n slots writable, numbered from 0, and returns how many.
// It publishes nothing: a reservation that is not submitted is simply forgotten
// at the next Reserve, which starts from the same slot.
func (p *Producer[T]) Reserve(n int) int {
	free := p.size() - (p.next - p.seen)
	if int64(free) < int64(n) {
		// Only in this case is the kernel's cache line worth fetching.
		free = uint32(p.Free())
	}
	p.reserved = uint32(max(0, min(int64(n), int64(free))))
	return int(p.reserved)
}

// Set writes slot i of the reservation. It panics if i is outside it, like an
// index out of range: the slot may belong to the kernel.
func (p *Producer[T]) Set(i int, v T) {
	if uint(i) >= uint(p.reserved) {
		panic("xsk: Set outside of the reserved slots")
	}
	*p.slot(p.next + uint32(i)) = v
}

// Submit publishes the first n reserved slots with one store. Those left over
// stay reserved and are numbered from 0 again. It panics if n exceeds the
// reservation.
func (p *Producer[T]) Submit(n int) {
	if uint(n) > uint(p.reserved) {
		panic("xsk: Submit of more than the reserved slots")
	}
	if n == 0 {
		return
	}
	p.next += uint32(n)
	p.reserved -= uint32(n)
	// Swap and no Store, which the race detector turns into a plain store: the load of
	// the flags that follows must not come before it.
	atomic.SwapUint32(p.producer, p.next)
}

// NeedWakeup reports whether the kernel waits to be told about submitted
// entries.
func (p *Producer[T]) NeedWakeup() bool { return p.needsWakeup() }

// Consumer is this process's end of a ring that the kernel produces: RX (T is
// Desc) or Completion (T is uint64, an address). One owner thread.
//
// A burst is Peek, Get for each entry, Release:
//
//	n := rx.Peek(64)
//	for i := range n {
//		handle(umem.Frame(rx.Get(i)))
//	}
//	rx.Release(n)
type Consumer[T any] struct {
	shared[T]
	next   uint32 // index of the first entry not released; equals *consumer
	seen   uint32 // *producer when last read; behind the kernel, never ahead
	peeked uint32 // entries from next on that Get may read
}

func newConsumer[T any](s shared[T]) *Consumer[T] {
	c := &Consumer[T]{}
	c.attach(s)
	return c
}

func (c *Consumer[T]) attach(s shared[T]) {
	*c = Consumer[T]{shared: s, next: atomic.LoadUint32(s.consumer), seen: atomic.LoadUint32(s.producer)}
}

// Size is the number of slots; 0 once the socket is closed.
func (c *Consumer[T]) Size() int { return int(c.size()) }

// Available is the number of entries that the kernel has published and that are
// not released.
func (c *Consumer[T]) Available() int {
	c.seen = atomic.LoadUint32(c.producer)
	return int(c.seen - c.next)
}

// Peek makes up to limit entries readable, numbered from 0, oldest first, and
// returns how many. Entries that are not released are seen again by the next Peek.
func (c *Consumer[T]) Peek(limit int) int {
	n := c.seen - c.next
	if int64(n) < int64(limit) {
		n = uint32(c.Available())
	}
	c.peeked = uint32(max(0, min(int64(limit), int64(n))))
	return int(c.peeked)
}

// Get reads entry i of those peeked. It panics if i is outside them.
func (c *Consumer[T]) Get(i int) T {
	if uint(i) >= uint(c.peeked) {
		panic("xsk: Get outside of the peeked entries")
	}
	return *c.slot(c.next + uint32(i))
}

// Release gives the slots of the first n peeked entries back to the kernel with
// one store. It says nothing about the chunks named in them: those remain with
// this process until they go into Fill or TX. The entries left over stay
// peeked and are numbered from 0 again. It panics if n exceeds those peeked.
func (c *Consumer[T]) Release(n int) {
	if uint(n) > uint(c.peeked) {
		panic("xsk: Release of more than the peeked entries")
	}
	if n == 0 {
		return
	}
	c.next += uint32(n)
	c.peeked -= uint32(n)
	atomic.StoreUint32(c.consumer, c.next)
}
