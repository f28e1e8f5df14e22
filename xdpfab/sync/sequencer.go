// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"sync"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// SequencerBytes is the size of a Sequencer.
const SequencerBytes = placeBytes

// Sequencer gives unique numbers that increase.
//
//	word 2   how many numbers were taken
//
// Invariant: no number is given twice. A block that is taken later has greater numbers. A
// number is the time at which the memory was marked, in nanoseconds, plus a count. So
// numbers in new memory are greater than all before, if programs took fewer than one a
// nanosecond on average, and clocks differ by less than the time for which the memory
// lived. Numbers are skipped if a program ends, or if it stays unknown who has a block.
type Sequencer struct {
	*part
	block uint64

	next      sync.Mutex // guards what is left of a block
	free, end uint64
}

// mostNumbers is the most that are taken at a time: so few that the word never wraps
// around, if programs take as many a thousand times a second for a century.
const mostNumbers = 1 << 20

// NewSequencer returns the sequencer at a place. Next takes block numbers at a time, so
// it sends one operation for every block calls.
func NewSequencer(ctx context.Context, at Place, block int) (*Sequencer, error) {
	if block < 1 || block > mostNumbers {
		return nil, errno.Refuse(ErrParameter, "xdpfab: NewSequencer with blocks of %d numbers: want 1 to %d", block,
			mostNumbers)
	}
	p, err := newPart(ctx, at, kindSequencer, SequencerBytes/8)
	return made(&Sequencer{part: p, block: uint64(block)}, err)
}

// Take takes n numbers in a row, and returns the first. They are greater than all numbers
// that any program had when Take was called.
func (s *Sequencer) Take(ctx context.Context, n int) (first uint64, err error) {
	if err := s.there(); err != nil {
		return 0, err
	}
	defer s.named("Take", &err)
	if n < 1 || n > mostNumbers {
		return 0, errno.Unsent(errno.Refuse(xdpfab.ErrCount, "xdpfab: %d numbers: want 1 to %d", n, mostNumbers))
	}
	for {
		err := s.run(ctx, func(m *memory) error {
			end, err := m.at(bodyWord).Add(ctx, uint64(n))
			first = m.epoch + end - uint64(n)
			return err
		})
		if err == nil {
			s.saw(first + uint64(n))
			return first, nil
		}
		// Of an unknown outcome nobody gets the numbers. There are others.
		if err := certain(ctx, again(ctx, err), xdpfab.ErrNotExecuted); err != nil {
			return 0, err
		}
	}
}

// Next returns a number that no other call gets. It is greater than those of all earlier
// calls of this Sequencer. The numbers of other programs may be greater or less.
func (s *Sequencer) Next(ctx context.Context) (n uint64, err error) {
	if err := s.there(); err != nil {
		return 0, err
	}
	defer s.named("Next", &err)
	s.next.Lock()
	defer s.next.Unlock()
	if s.free == s.end {
		first, err := s.Take(ctx, int(s.block))
		if err != nil {
			return 0, err
		}
		s.free, s.end = first, first+s.block
	}
	s.free++
	return s.free - 1, nil
}
