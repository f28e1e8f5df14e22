// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// HistogramBytes returns the size of a Histogram with the given number of bounds.
func HistogramBytes(bounds int) int { return bytesOf(bodyWord + bounds + 1) }

// Histogram counts values by range.
//
//	word 2 + i   the number of values above bound i - 1 and not above bound i
//
// Invariant: a value that Record takes without an error is counted once, in one word.
type Histogram struct {
	*part
	bounds []uint64
	told   uint64 // the epoch of the memory that Counts has told of
}

// NewHistogram returns the histogram at a place. Each bound must be greater than the one
// before. All programs must name the same bounds.
func NewHistogram(ctx context.Context, at Place, bounds ...uint64) (*Histogram, error) {
	for i := range bounds {
		if i > 0 && bounds[i] <= bounds[i-1] {
			return nil, errno.Refuse(ErrParameter,
				"xdpfab: NewHistogram: bound %d is %d, and the one before %d: want bounds that grow", i,
				bounds[i], bounds[i-1])
		}
	}
	if len(bounds) < 1 || len(bounds) > mostWords {
		return nil, errno.Refuse(ErrParameter, "xdpfab: NewHistogram with %d bounds: want 1 to %d", len(bounds),
			mostWords)
	}
	p, err := newPart(ctx, at, kindHistogram, bodyWord+uint64(len(bounds))+1, bounds...)
	if err != nil {
		return nil, err
	}
	return &Histogram{part: p, bounds: slices.Clone(bounds), told: p.epoch}, nil
}

// Record counts values, all in one round trip. If the error wraps ErrOutcomeUnknown, some
// of them may be counted. After any other error none is.
func (h *Histogram) Record(ctx context.Context, values ...uint64) (err error) {
	if err := h.there(); err != nil {
		return err
	}
	defer h.named("Record", &err)
	for len(values) > 0 {
		m, err := h.memory(ctx)
		if err != nil {
			return err
		}
		at, counts := h.sort(m, values)
		err = xdpfab.SettleError(ctx, m.words.Add(ctx, at, counts, nil))
		switch {
		case err == nil:
			return nil
		case h.restarted(m, err) && errors.Is(err, xdpfab.ErrNotExecuted) && ctx.Err() == nil:
		case errors.Is(err, xdpfab.ErrNotExecuted):
			return err
		default:
			return certain(ctx, err, xdpfab.ErrOutcomeUnknown)
		}
	}
	return nil
}

// sort returns the words of values, and how many are for each.
func (h *Histogram) sort(m *memory, values []uint64) (at, counts []uint64) {
	n := map[int]uint64{}
	for _, v := range values {
		n[sort.Search(len(h.bounds), func(i int) bool { return v <= h.bounds[i] })]++
	}
	for i, count := range n {
		at, counts = append(at, m.first+bodyWord+uint64(i)), append(counts, count)
	}
	return at, counts
}

// Counts returns the number of values in each range: one range for each bound, and the
// last one for values above all bounds. Values that are recorded meanwhile may be
// included. If the error wraps ErrMemoryLost, the home has lost its memory, and the
// result is what was recorded since. Counts reports each loss once.
func (h *Histogram) Counts(ctx context.Context) (counts []uint64, err error) {
	if err := h.there(); err != nil {
		return nil, err
	}
	defer h.named("Counts", &err)
	counts = make([]uint64, len(h.bounds)+1)
	var lost error
	err = h.look(ctx, func(m *memory) error {
		if err := m.words.LoadRange(ctx, m.first+bodyWord, counts); err != nil {
			return err
		}
		if h.anew(&h.told, m) {
			lost = fmt.Errorf("%w, and the counts began again: add those of an earlier call if they have to go on",
				ErrMemoryLost)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, lost
}
