// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// leastPause is how long until waits at first: a few round trips.
const leastPause = 20 * time.Microsecond

// What a caller can do whose context ends too early.
const (
	moreTime   = "give the context more time"
	unanswered = "the home had not answered: " + moreTime
	over       = "the context had ended: give one that lasts"
)

// until calls look until it reports true or fails, with pauses from leastPause to most.
// waited says, once look has reported false, what the caller waits for and what it can do
// if the wait ends.
func (p *part) until(ctx context.Context, most time.Duration, waited func() string, look func() (bool, error)) error {
	words := unanswered
	if ctx != nil && ctx.Err() != nil {
		words = over
	}
	for between := (pauses{most: most}); ; {
		done, err := look()
		if err == nil && !done {
			words = waited()
			err = between.pause(ctx)
		}
		if done || err != nil {
			return ended(ctx, err, words)
		}
	}
}

// ended has an error say what was waited for, if the wait ended with its context. Which
// operation was under way then does not matter, unless its outcome is unknown.
func ended(ctx context.Context, err error, waited string) error {
	if ctx == nil {
		return err
	}
	cause := context.Cause(ctx)
	switch {
	case err == nil || cause == nil:
		return err
	case errors.Is(err, cause) && !errors.Is(err, xdpfab.ErrOutcomeUnknown):
		return errno.Also(tell(cause, "%s", waited), err)
	}
	return tell(err, "%s", waited)
}

// pauses are between the looks of a caller that waits for others, which it does nowhere
// else. Each is half as long again as the one before, up to the most: so it is about half
// of the time that has passed, and what happens is seen soon, compared with that.
type pauses struct{ most, next time.Duration }

// begin has the next pause be a short one.
func (p *pauses) begin(first time.Duration) { p.next = first }

// pause sleeps, for longer or shorter at random, so that callers do not keep step.
func (p *pauses) pause(ctx context.Context) error {
	d := min(max(p.next, leastPause), p.most)
	p.next = d + d/2
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// again returns an error, or nothing if it is an unknown outcome of what may be repeated.
// A home that was silent for GiveUp is not asked for as long once more.
func again(ctx context.Context, err error) error {
	if errors.Is(err, xdpfab.ErrOutcomeUnknown) && !errors.Is(err, xdpfab.ErrPeerSilent) && ctx.Err() == nil {
		return nil
	}
	return err
}

// sight is a word as one program sees it. A holder writes its word again and again. Who
// has seen it unchanged for more than a lease, by the own clock, knows that the holder's
// lease is over by the holder's clock: it counts from before the last write, and the
// sight from after a look. Clocks need not agree, but have to run alike, to an eighth.
type sight struct {
	value       uint64
	since, last time.Time
}

// expired takes another look into account. Looks that are too far apart tell nothing,
// since the beat of a holder may have come round meanwhile.
func (s *sight) expired(value uint64, lease time.Duration) bool {
	now := time.Now()
	if s.since.IsZero() || value != s.value || now.Sub(s.last) > 100*lease {
		s.value, s.since = value, now
	}
	s.last = now
	return now.Sub(s.since) > lease+lease/8
}
