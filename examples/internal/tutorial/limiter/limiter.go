// SPDX-License-Identifier: Apache-2.0

// Package limiter has the second and the third limiter of docs/tutorial.md: periods, and
// customers.
package limiter

import (
	"context"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Limiter admits a quota of requests in each period.
type Limiter struct {
	Word   xdpfab.Remote[uint64]
	Quota  uint64
	Period time.Duration
}

// counted is how many bits of the word have the count. The period is in those above.
const counted = 24

// Allow reports whether a request may pass.
func (l *Limiter) Allow(ctx context.Context) (bool, error) {
	now := uint64(time.Now().UnixNano() / int64(l.Period))
	state, err := l.Word.Add(ctx, 1)
	for err == nil && state>>counted < now { // the count is of an earlier period
		var swapped bool
		state, swapped, err = l.Word.CompareAndExchange(ctx, state, now<<counted|1)
		if swapped {
			return true, nil
		}
		if err == nil && state>>counted >= now { // another program was faster
			state, err = l.Word.Add(ctx, 1)
		}
	}
	return err == nil && state&(1<<counted-1) <= l.Quota, err
}
