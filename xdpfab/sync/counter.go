// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// CounterBytes is the size of each shard of a Counter.
const CounterBytes = placeBytes

// Counter is a sum in several shards, usually on several nodes. It takes more additions
// than one node can, and goes on while a node is down.
//
//	word 2 of each shard   a part of the sum
//
// Invariant: an addition that succeeds is in one shard, once. An addition that was not
// executed is in none. An addition whose outcome is unknown is in one shard or in none.
type Counter struct{ shards []*shard }

// shard is a part of the sum, in memory of which an epoch was seen.
type shard struct {
	*part
	first uint64
}

// NewCounter returns the counter whose shards are at the given places. All programs must
// name the same places, each once and in any order. NewCounter needs all of their homes.
func NewCounter(ctx context.Context, at ...Place) (*Counter, error) {
	if len(at) == 0 {
		return nil, errno.Refuse(ErrParameter, "xdpfab: NewCounter without places: want one or more")
	}
	for i, place := range at { // before a shard is marked
		if err := place.check(kindCounter); err != nil {
			return nil, err
		}
		if first := slices.Index(at, place); first < i {
			return nil, errTwice(i, first)
		}
	}
	c := &Counter{}
	for i, place := range at {
		p, err := newPart(ctx, place, kindCounter, CounterBytes/8)
		if err != nil {
			return nil, err
		}
		if first := slices.IndexFunc(c.shards, p.same); first >= 0 {
			return nil, errTwice(i, first)
		}
		c.shards = append(c.shards, &shard{p, p.epoch})
	}
	return c, nil
}

// errTwice refuses a place that was named before.
func errTwice(i, first int) error {
	return errno.Refuse(ErrParameter,
		"xdpfab: NewCounter: shard %d is at the place of shard %d, and would count twice: want each place once", i,
		first)
}

// same reports whether a shard has the memory of a part. Its home may be another peer by
// another address of the same node, but nobody else has marked memory at that time.
func (p *part) same(s *shard) bool {
	return s.place.Region == p.place.Region && s.place.Offset == p.place.Offset && s.first == p.epoch
}

// Add adds delta to a shard; if that shard's home cannot be reached, to another one. Add
// waits until the outcome is known, or until ctx ends. If there is no error, the addition
// ran once. If the error wraps ErrOutcomeUnknown, it ran once or not at all.
func (c *Counter) Add(ctx context.Context, delta uint64) (err error) {
	if err := c.there(); err != nil {
		return err
	}
	first := rand.IntN(len(c.shards))
	for i := range c.shards {
		s := c.shards[(first+i)%len(c.shards)]
		if err = s.in("Add", s.add(ctx, delta)); err == nil || ctx == nil ||
			ctx.Err() != nil || errors.Is(err, xdpfab.ErrOutcomeUnknown) {
			return err
		}
	}
	return err
}

// add adds to a shard. Its error wraps ErrOutcomeUnknown, or nothing was added.
func (s *shard) add(ctx context.Context, delta uint64) error {
	for {
		m, err := s.memory(ctx)
		if err != nil {
			return err
		}
		err = xdpfab.SettleError(ctx, m.at(bodyWord).Apply(ctx, atomic.Sum, delta))
		switch {
		case err == nil:
			return nil
		case s.restarted(m, err) && errors.Is(err, xdpfab.ErrNotExecuted) && ctx.Err() == nil:
		case errors.Is(err, xdpfab.ErrNotExecuted):
			return err
		default:
			return certain(ctx, err, xdpfab.ErrOutcomeUnknown)
		}
	}
}

// Sum returns the sum of the shards. It reads them at about the same time, but not as one
// operation. If the counter only grows, the result is at least the sum when the call
// began, and at most the sum when it ended. If the error wraps ErrMemoryLost, a home has
// lost its part, and the result is the sum of what the homes still have. Sum reports each
// loss once.
func (c *Counter) Sum(ctx context.Context) (sum uint64, err error) {
	if err := c.there(); err != nil {
		return 0, err
	}
	var lost error
	for i, s := range c.shards {
		err := s.look(ctx, func(m *memory) error {
			n, err := m.at(bodyWord).Load(ctx)
			if err == nil {
				sum += n
				if s.anew(&s.first, m) {
					lost = s.in("Sum", fmt.Errorf("shard %d: %w, and its part of the sum began again at 0: add what "+
						"was lost if the sum has to go on", i, ErrMemoryLost))
				}
			}
			return err
		})
		switch {
		case err != nil && lost != nil: // which is told once
			return 0, errno.Line("%w; %w", lost, s.in("Sum", tell(err, "shard %d", i)))
		case err != nil:
			return 0, s.in("Sum", tell(err, "shard %d", i))
		}
	}
	return sum, lost
}
