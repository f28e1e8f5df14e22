// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// block is numbers that a program got, and when.
type block struct {
	first, n uint64
	from, to time.Time // of the call
}

// No number is given twice, and blocks that were taken one after the other grow.
func TestSequencer(t *testing.T) {
	eachSeed(t, 4, func(w *world) {
		var mu sync.Mutex
		var blocks []block
		w.busy(4, everything, func(ctx context.Context, _ int, at Place, rng *rand.Rand) error {
			s, err := NewSequencer(ctx, at, 1)
			if err != nil {
				return err
			}
			for range 1 + rng.IntN(20) {
				b := block{n: 1 + rng.Uint64N(100), from: time.Now()}
				if b.first, err = s.Take(ctx, int(b.n)); err != nil {
					return err
				}
				b.to = time.Now()
				mu.Lock()
				blocks = append(blocks, b)
				mu.Unlock()
			}
			return nil
		})
		slices.SortFunc(blocks, func(a, b block) int { return int(a.first) - int(b.first) })
		var began time.Time // the latest of those with lower numbers
		for i, b := range blocks {
			if i > 0 && blocks[i-1].first+blocks[i-1].n > b.first {
				w.t.Errorf("%d numbers from %d on, and then %d", blocks[i-1].n, blocks[i-1].first, b.first)
			}
			if began.After(b.to) {
				w.t.Errorf("numbers from %d on were taken before lower ones", b.first)
			}
			if b.from.After(began) {
				began = b.from
			}
		}
		w.t.Log(len(blocks), "blocks")
	})
}

// Next takes a block, and leaves none of it out.
func TestSequencerNext(t *testing.T) {
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	s := must(NewSequencer(ctx, w.at(1, 0), 3))(t)
	last := must(s.Next(ctx))(t)
	for range 6 {
		n := must(s.Next(ctx))(t)
		if n != last+1 {
			t.Errorf("%d after %d", n, last)
		}
		last = n
	}
	w.restart(false)
	for range 3 {
		n := must(s.Next(ctx))(t)
		if n <= last {
			t.Errorf("in new memory %d after %d", n, last)
		}
		last = n
	}
	for _, n := range []int{-1, 0, mostNumbers + 1, 1 << 62} { // so many could come round
		if _, err := s.Take(ctx, n); !errors.Is(err, xdpfab.ErrCount) {
			t.Errorf("%d numbers at a time: %v", n, err)
		}
		if _, err := NewSequencer(ctx, w.at(1, 0), n); !errors.Is(err, ErrParameter) {
			t.Errorf("blocks of %d numbers: %v", n, err)
		}
	}
}
