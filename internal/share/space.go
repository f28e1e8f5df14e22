// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import "math/bits"

// space gives out blocks of the arena. A block is a power of two of units long; halves of
// a block that are both free become one again. It belongs to one thread.
type space struct {
	free [][]uint64 // by order: bit i is set if block i of that order is free
	hint []int      // by order: no word before it has a bit set
}

const (
	unit    = 256 // bytes of the smallest block
	unitLog = 8
)

// newSpace manages an arena of a number of bytes. It uses the largest power of
// two.
func newSpace(bytes int) *space {
	orders := bits.Len(uint(bytes)) - unitLog
	s := &space{hint: make([]int, orders)}
	for o := range orders {
		s.free = append(s.free, make([]uint64, (1<<(orders-1-o)+63)/64))
	}
	s.free[orders-1][0] = 1
	return s
}

// order returns the order of blocks that n bytes need.
func order(n int) int { return max(bits.Len(uint(max(n, 1)-1))-unitLog, 0) }

// largest is the size in bytes of the largest block.
func (s *space) largest() int { return unit << (len(s.free) - 1) }

// get takes a block of at least n bytes, and returns its offset; ok is false if none is
// free.
func (s *space) get(n int) (offset uint64, ok bool) {
	want := order(n)
	for o := want; o < len(s.free); o++ {
		i, ok := s.find(o)
		if !ok {
			continue
		}
		s.clear(o, i)
		for ; o > want; o-- { // the second half stays free
			i *= 2
			s.set(o-1, i+1)
		}
		return uint64(i) * unit << want, true
	}
	return 0, false
}

// put gives back a block of n bytes.
func (s *space) put(offset uint64, n int) {
	o := order(n)
	i := int(offset / unit >> o)
	for ; o < len(s.free)-1 && s.has(o, i^1); o++ {
		s.clear(o, i^1)
		i /= 2
	}
	s.set(o, i)
}

func (s *space) find(o int) (int, bool) {
	words := s.free[o]
	for w := s.hint[o]; w < len(words); w++ {
		if words[w] != 0 {
			s.hint[o] = w
			return w*64 + bits.TrailingZeros64(words[w]), true
		}
	}
	s.hint[o] = len(words)
	return 0, false
}

func (s *space) has(o, i int) bool { return s.free[o][i/64]&(1<<(i%64)) != 0 }
func (s *space) clear(o, i int)    { s.free[o][i/64] &^= 1 << (i % 64) }
func (s *space) set(o, i int) {
	s.free[o][i/64] |= 1 << (i % 64)
	s.hint[o] = min(s.hint[o], i/64)
}
