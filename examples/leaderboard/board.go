// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// board is used by one goroutine.
type board struct {
	scores xdpfab.RemoteVector[uint64]
	best   map[uint64]uint64 // what this program has posted, by player
}

type entry struct{ player, score uint64 }

// post posts a score if it is the player's best. Max may run twice without harm, so post
// repeats it after any outcome.
func (b *board) post(ctx context.Context, player, score uint64) (err error) {
	if score <= b.best[player] {
		return nil
	}
	b.best[player] = score
	for range 3 {
		_, err = xdpfab.Max(ctx, b.scores.At(player), score)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, xdpfab.ErrPeerRestarted):
			return b.again(ctx)
		}
	}
	return err
}

// again posts all scores, because the board is empty after a restart of its node. Every
// other program does the same when it notices the restart.
func (b *board) again(ctx context.Context) error {
	if err := b.scores.Rebind(ctx); err != nil {
		return err
	}
	var at, scores []uint64
	for player, score := range b.best {
		at, scores = append(at, player), append(scores, score)
	}
	return b.scores.Apply(ctx, atomic.Max, at, scores)
}

// top returns the best n players, or all of them.
func (b *board) top(ctx context.Context, n int) ([]entry, error) {
	scores := make([]uint64, players)
	err := b.scores.LoadRange(ctx, 0, scores)
	if errors.Is(err, xdpfab.ErrPeerRestarted) {
		if err = b.again(ctx); err == nil {
			err = b.scores.LoadRange(ctx, 0, scores)
		}
	}
	if err != nil {
		return nil, err
	}
	all := make([]entry, players)
	for i, s := range scores {
		all[i] = entry{uint64(i), s}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(b.score, a.score) })
	return all[:min(n, len(all))], nil
}
