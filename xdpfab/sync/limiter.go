// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"hash/fnv"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// LimiterBytes returns the size of a Limiter with the given number of counts.
func LimiterBytes(counts int) int { return bytesOf(bodyWord + counts) }

// countedBits is how many bits of a word have the count. The period is in those above.
const countedBits = 24

// Limiter admits a quota of requests of each customer in each period.
//
//	word 2 + i   a period, counted from 1970 (40 bits), and the requests admitted in it (24 bits)
//
// Invariant: the period in a word only grows. Within a period the count grows to the
// quota, and no further. So in any span of time, a customer gets at most the quota for
// each period that begins in it, by the fastest clock, and once more. New memory admits
// up to one more quota. A request whose outcome is unknown may be counted.
type Limiter struct {
	*part
	quota  uint64
	period time.Duration
}

// NewLimiter returns the limiter at a place. All programs must name the same counts,
// quota and period. counts is the number of words; a hash of the customer's name chooses
// one. Customers with the same word share a quota.
func NewLimiter(ctx context.Context, at Place, counts int, quota uint64, period time.Duration) (*Limiter, error) {
	switch {
	case counts < 1 || counts > mostWords:
		return nil, errno.Refuse(ErrParameter, "xdpfab: NewLimiter with %d counts: want 1 to %d", counts, mostWords)
	case quota < 1 || quota >= 1<<countedBits:
		return nil, errno.Refuse(ErrParameter, "xdpfab: NewLimiter with a quota of %d: want 1 to %d", quota,
			1<<countedBits-1)
	case period < time.Millisecond:
		return nil, errno.Refuse(ErrParameter, "xdpfab: NewLimiter with a period of %v: want at least 1ms", period)
	}
	p, err := newPart(ctx, at, kindLimiter, bodyWord+uint64(counts), uint64(counts), quota, uint64(period))
	return made(&Limiter{p, quota, period}, err)
}

// Allow reports whether n requests of a customer may pass: all of them or none. If n is
// greater than the quota, so that they can pass in no period, Allow fails with
// ErrParameter. After any error the caller decides itself. If the error wraps
// ErrOutcomeUnknown, the requests may be counted; after any other error they are not.
func (l *Limiter) Allow(ctx context.Context, customer string, n uint64) (ok bool, err error) {
	if err := l.there(); err != nil {
		return false, err
	}
	defer l.named("Allow", &err)
	if n > l.quota {
		return false, errno.Unsent(errno.Refuse(ErrParameter, "%d requests at once, and the quota is %d: want at most "+
			"the quota, ask for them in parts", n, l.quota))
	}
	for {
		m, err := l.memory(ctx)
		if err != nil {
			return false, err
		}
		ok, err := l.count(ctx, m.at(bodyWord+l.index(customer)), n)
		switch restarted := l.restarted(m, err); {
		case err == nil:
			return ok, nil
		case errors.Is(err, xdpfab.ErrNotExecuted) && restarted && ctx.Err() == nil:
		case errors.Is(err, xdpfab.ErrNotExecuted):
			return false, err
		case !restarted || !l.lost(ctx, m): // another attempt would count them twice
			return false, certain(ctx, err, xdpfab.ErrOutcomeUnknown)
		}
	}
}

// lost reports whether the home has other memory by now, and so other counts.
func (l *Limiter) lost(ctx context.Context, was *memory) bool {
	now, err := l.memory(ctx)
	return err == nil && now.epoch != was.epoch
}

// count counts n requests in a word, and reports whether there was room for them.
func (l *Limiter) count(ctx context.Context, word xdpfab.Remote[uint64], n uint64) (bool, error) {
	for now := uint64(time.Now().UnixNano() / int64(l.period)); ; {
		was, err := word.Compare(ctx, atomic.SumAtMost, now<<countedBits|l.quota, n)
		if was, err = xdpfab.Settle(ctx, was, err); err != nil {
			return false, err
		}
		switch at := was >> countedBits; {
		case at == now:
			return was&(1<<countedBits-1)+n <= l.quota, nil
		case at > now: // by a clock that is ahead
			now = at
		default: // counted in a period that is over
			found, err := exchange(ctx, word, was+n, now<<countedBits|n)
			if err != nil || found == was+n {
				return err == nil, err
			}
		}
	}
}

// index returns the number of a customer's count.
func (l *Limiter) index(customer string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(customer))
	return h.Sum64() % (l.size - bodyWord)
}
