// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// BarrierBytes returns the size of a Barrier of the given number of parties.
func BarrierBytes(parties int) int { return bytesOf(bodyWord + parties) }

// Barrier lets parties continue once all of them have arrived, round after round.
//
//	word 2 + i   the round that party i has reached
//
// Invariant: a word only grows, and only its own party writes it. So an arrival can be
// written again without harm: after an unknown outcome, or into new memory. A party that
// has passed a round whose words were lost does not write that round again; its next
// round stands for it.
type Barrier struct {
	*part
	self  uint64
	round uint64 // that the party has passed
	told  uint64 // the last round of which the home may know that the party is there
}

// NewBarrier returns the barrier at a place for one of the parties, which are numbered
// from 0 to parties - 1. All programs must name the same number of parties. One goroutine
// uses the Barrier. A party that starts again continues after the round that it has
// reached.
func NewBarrier(ctx context.Context, at Place, parties, self int) (*Barrier, error) {
	if parties < 1 || parties > mostWords || self < 0 || self >= parties {
		return nil, errno.Refuse(ErrParameter,
			"xdpfab: NewBarrier for party %d of %d: want 1 to %d parties, with numbers from 0 on", self,
			parties, mostWords)
	}
	p, err := newPart(ctx, at, kindBarrier, bodyWord+uint64(parties), uint64(parties))
	if err != nil {
		return nil, err
	}
	b := &Barrier{part: p, self: uint64(self)}
	err = b.look(ctx, func(m *memory) (err error) {
		b.round, err = m.at(bodyWord + b.self).Load(ctx)
		return err
	})
	return made(b, at.put(at.of("NewBarrier"), err))
}

// Await waits until all parties have reached the next round, and returns the round's
// number. If Await fails, the others may have seen the party arrive, unless the error
// wraps xdpfab.ErrNotExecuted; the next Await waits for the same round. If ctx ends, the
// error says which parties are missing.
func (b *Barrier) Await(ctx context.Context) (round uint64, err error) {
	if err := b.there(); err != nil {
		return 0, err
	}
	defer b.named("Await", &err)
	var seen bool
	there := make([]uint64, b.size-bodyWord)
	waited := func() string {
		return fmt.Sprintf("parties %v were missing in round %d: call Await again, or %s", late(there, b.round+1),
			b.round+1, moreTime)
	}
	err = b.until(ctx, mostPause, waited, func() (bool, error) {
		err := b.run(ctx, func(m *memory) error {
			_, err := xdpfab.Max(ctx, m.at(bodyWord+b.self), b.round+1)
			if !errors.Is(err, xdpfab.ErrNotExecuted) {
				b.told = b.round + 1
			}
			if err != nil {
				return err
			}
			return m.words.LoadRange(ctx, m.first+bodyWord, there)
		})
		seen = seen || err == nil
		if err != nil && seen && ctx.Err() != nil {
			err = context.Cause(ctx) // which operation was under way does not matter
		}
		if err = again(ctx, err); b.told > b.round {
			err = certain(ctx, err, xdpfab.ErrOutcomeUnknown)
		}
		return err == nil && len(late(there, b.round+1)) == 0, err
	})
	switch {
	case err != nil && b.told > b.round:
		return 0, errno.Also(err, xdpfab.ErrOutcomeUnknown)
	case err != nil:
		return 0, err
	}
	b.round++
	return b.round, nil
}

// late returns who has not reached a round.
func late(there []uint64, round uint64) (missing []int) {
	for i, reached := range there {
		if reached < round {
			missing = append(missing, i)
		}
	}
	return missing
}
