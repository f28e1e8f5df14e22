// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// BoardBytes returns the size of a Board of the given number of players.
func BoardBytes(players int) int { return bytesOf(bodyWord + players) }

// Board keeps the best score of each player, and so knows the best players.
//
//	word 2 + p   the best score of player p
//
// Invariant: a word only grows, to scores that were posted. So a score can be posted
// twice without harm. If the home loses its memory, each program posts its own scores
// again with its next call.
type Board struct {
	*part
	best map[uint64]uint64 // what this program has posted, by player
	todo map[uint64]uint64 // that the memory may lack
	in   uint64            // the epoch of that memory
}

// Score is the best score of a player.
type Score struct{ Player, Score uint64 }

// NewBoard returns the board at a place. All programs must name the same number of
// players. One goroutine uses the Board.
func NewBoard(ctx context.Context, at Place, players int) (*Board, error) {
	if players < 1 || players > mostWords {
		return nil, errno.Refuse(ErrParameter, "xdpfab: NewBoard with %d players: want 1 to %d", players, mostWords)
	}
	p, err := newPart(ctx, at, kindBoard, bodyWord+uint64(players), uint64(players))
	return made(&Board{part: p, best: map[uint64]uint64{}, todo: map[uint64]uint64{}}, err)
}

// Post records a score, which counts if it is the player's best. After an error the score
// may count already; otherwise it will once a call of any method succeeds.
func (b *Board) Post(ctx context.Context, player, score uint64) (err error) {
	if err := b.there(); err != nil {
		return err
	}
	defer b.named("Post", &err)
	if players := b.size - bodyWord; player >= players {
		return errno.Unsent(errno.Refuse(xdpfab.ErrOutOfBounds, "player %d of %d: want 0 to %d", player, players,
			players-1))
	}
	if score > b.best[player] {
		b.best[player], b.todo[player] = score, score
	}
	return b.run(ctx, func(m *memory) error { return b.post(ctx, m) })
}

// post posts what the memory may lack.
func (b *Board) post(ctx context.Context, m *memory) error {
	if b.in != m.epoch {
		maps.Copy(b.todo, b.best)
	}
	var at, scores []uint64
	for player, score := range b.todo {
		at, scores = append(at, m.first+bodyWord+player), append(scores, score)
	}
	if len(at) > 0 {
		if err := xdpfab.SettleError(ctx, m.words.Apply(ctx, atomic.Max, at, scores)); err != nil {
			return err
		}
	}
	b.in = m.epoch
	clear(b.todo)
	return nil
}

// Top returns the best n players, the best one first, or fewer if fewer have posted a
// score: a score of 0 is none. Of players with equal scores, the one with the lower
// number comes first. n must not be negative.
func (b *Board) Top(ctx context.Context, n int) (best []Score, err error) {
	if err := b.there(); err != nil {
		return nil, err
	}
	defer b.named("Top", &err)
	if n < 0 {
		return nil, errno.Unsent(errno.Refuse(ErrParameter, "the best %d players: want 0 or more", n))
	}
	scores := make([]uint64, b.size-bodyWord)
	err = b.run(ctx, func(m *memory) error {
		if err := b.post(ctx, m); err != nil {
			return err
		}
		return m.words.LoadRange(ctx, m.first+bodyWord, scores)
	})
	if err != nil {
		return nil, err
	}
	var all []Score
	for i, s := range scores {
		if s > 0 {
			all = append(all, Score{uint64(i), s})
		}
	}
	slices.SortStableFunc(all, func(a, b Score) int { return cmp.Compare(b.Score, a.Score) })
	return all[:min(n, len(all))], nil
}
