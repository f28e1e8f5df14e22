// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// block is how many numbers are taken at a time. The rest of a block is never used.
const block = 64

// sequencer is used by one goroutine.
type sequencer struct {
	word      xdpfab.Remote[uint64]
	free, end uint64 // what is left of the block
}

func newSequencer(ctx context.Context, peer *xdpfab.Peer) (*sequencer, error) {
	// Without AutoRebind: after a restart the word would begin again at 0, unnoticed.
	word, err := xdpfab.Word[uint64](ctx, peer, "sequences", 0)
	if err != nil {
		return nil, err
	}
	s := &sequencer{word: word}
	return s, s.seed(ctx)
}

// seed starts the numbers of new memory at the time in nanoseconds. They are greater than
// those of the old memory, because nobody takes a number each nanosecond.
func (s *sequencer) seed(ctx context.Context) error {
	swapped, err := s.word.CompareAndSwap(ctx, 0, uint64(time.Now().UnixNano()))
	_, err = xdpfab.Settle(ctx, swapped, err)
	return err // if not swapped, another program has seeded it
}

// next returns a number that is greater than all earlier ones.
func (s *sequencer) next(ctx context.Context) (uint64, error) {
	for s.free == s.end {
		end, err := s.word.Add(ctx, block)
		switch {
		case err == nil && end-block < s.end:
			return 0, fmt.Errorf("the numbers of new memory begin at %d, after %d: compare the clocks of the nodes",
				end-block, s.end)
		case err == nil:
			s.free, s.end = end-block, end
		case errors.Is(err, xdpfab.ErrPeerRestarted):
			if err := errors.Join(s.word.Rebind(ctx), s.seed(ctx)); err != nil {
				return 0, err
			}
		case errors.Is(err, xdpfab.ErrOutcomeUnknown) && ctx.Err() == nil:
			// The block may be taken. In either case, nobody uses it: take another one.
		default:
			return 0, err
		}
	}
	s.free++
	return s.free - 1, nil
}
