// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// barrier has a word for each party, which holds the round that the party has reached. So
// an arrival may be repeated without harm, and the words show who is missing.
type barrier struct {
	words xdpfab.RemoteVector[uint64]
	self  uint64
}

// wait returns when all parties have reached a round. Rounds start at 1. It writes its
// word before each check: if the memory is lost, all waiting parties soon write their
// words again.
func (b barrier) wait(ctx context.Context, round uint64) error {
	pause := time.NewTicker(100 * time.Microsecond)
	defer pause.Stop()
	there := make([]uint64, *parties)
	for ctx.Err() == nil {
		_, err := xdpfab.Max(ctx, b.words.At(b.self), round)
		if err == nil {
			err = b.words.LoadRange(ctx, 0, there)
		}
		switch {
		case err == nil && len(late(there, round)) == 0:
			return nil
		case errors.Is(err, xdpfab.ErrPeerRestarted):
			if err := b.words.Rebind(ctx); err != nil {
				return err
			}
		case err != nil && !errors.Is(err, xdpfab.ErrOutcomeUnknown) && ctx.Err() == nil:
			return err
		}
		<-pause.C
	}
	return fmt.Errorf("round %d waits for programs %v: %w", round, late(there, round), context.Cause(ctx))
}

// late returns the parties that have not reached a round.
func late(there []uint64, round uint64) (missing []int) {
	for i, reached := range there {
		if reached < round {
			missing = append(missing, i)
		}
	}
	return missing
}
