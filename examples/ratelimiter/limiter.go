// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// limiter admits so many requests of a customer in each period.
type limiter struct {
	words  xdpfab.RemoteVector[uint64]
	quota  uint64
	period time.Duration

	share    uint64        // of the quota: what this program admits while it is alone
	patience time.Duration // for the answer to one request
	pause    time.Duration // between attempts to reach the home

	away atomic.Int64 // when to try again to reach the home, in nanoseconds

	mu    sync.Mutex
	since uint64            // the period of own
	own   map[string]uint64 // requests of customers that were decided here
}

func newLimiter(ctx context.Context, peer *xdpfab.Peer, quota uint64, period time.Duration) (*limiter, error) {
	// After a restart of the home the counts begin again: at most one quota more.
	words, err := xdpfab.Vector[uint64](ctx, peer, "limits", xdpfab.AutoRebind())
	return &limiter{words: words, quota: quota, period: period,
		share: quota / 10, patience: 50 * time.Millisecond, pause: time.Second}, err
}

// allow reports whether a request may pass.
func (l *limiter) allow(ctx context.Context, customer string) bool {
	if time.Now().UnixNano() < l.away.Load() {
		return l.alone(customer)
	}
	call, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	n, err := l.count(call, customer)
	if errors.Is(err, xdpfab.ErrPeerRestarted) {
		n, err = l.count(call, customer) // in the new memory
	}
	if err != nil { // not executed or unknown: the request cannot wait until that is known
		l.away.Store(time.Now().Add(l.pause).UnixNano())
		return l.alone(customer)
	}
	return n <= l.quota
}

// counted is how many bits of a word have the count. The period is in those above.
const counted = 24

// count counts a request at the home, and returns its number in the period.
func (l *limiter) count(ctx context.Context, customer string) (uint64, error) {
	word, now := l.words.At(l.index(customer)), l.now()
	state, err := word.Add(ctx, 1)
	for err == nil && state>>counted < now { // the count is of an earlier period
		var swapped bool
		state, swapped, err = word.CompareAndExchange(ctx, state, now<<counted|1)
		if swapped {
			return 1, nil
		}
		if err == nil && state>>counted >= now { // another program was faster
			state, err = word.Add(ctx, 1)
		}
	}
	return state & (1<<counted - 1), err
}

// now is the number of the period.
func (l *limiter) now() uint64 { return uint64(time.Now().UnixNano() / int64(l.period)) }

// index returns the word of a customer. Two that meet there share a quota.
func (l *limiter) index(customer string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(customer))
	return h.Sum64() % l.words.Len()
}

// alone decides without the home.
func (l *limiter) alone(customer string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := l.now(); l.since != now {
		l.since, l.own = now, map[string]uint64{}
	}
	l.own[customer]++
	return l.own[customer] <= l.share
}
