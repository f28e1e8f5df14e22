// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
	xsync "github.com/xdpfab/xdpfab/xdpfab/sync"
)

// counts is the number of words for counts. Customers with the same word share a quota.
const counts = 500

// limiter admits so many requests of a customer in each period. If the home does not
// answer it decides alone.
type limiter struct {
	home   *xsync.Limiter
	period time.Duration

	share    uint64        // of the quota: what this program admits while it is alone
	patience time.Duration // for the answer to one request
	pause    time.Duration // between attempts to reach the home

	away atomic.Int64 // when to try again to reach the home, in nanoseconds

	mu    sync.Mutex
	since int64             // the period of own
	own   map[string]uint64 // requests of customers that were decided here
}

func newLimiter(ctx context.Context, peer *xdpfab.Peer, quota uint64, period time.Duration) (*limiter, error) {
	home, err := xsync.NewLimiter(ctx, xsync.Place{Home: peer, Region: "limits"}, counts, quota, period)
	return &limiter{home: home, period: period,
		share: quota / 10, patience: 50 * time.Millisecond, pause: time.Second}, err
}

// allow reports whether a request may pass.
func (l *limiter) allow(ctx context.Context, customer string) bool {
	if time.Now().UnixNano() < l.away.Load() {
		return l.alone(customer)
	}
	call, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	ok, err := l.home.Allow(call, customer, 1)
	if err != nil { // not executed or unknown: the request cannot wait until that is known
		l.away.Store(time.Now().Add(l.pause).UnixNano())
		return l.alone(customer)
	}
	return ok
}

// alone decides without the home.
func (l *limiter) alone(customer string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now().UnixNano() / int64(l.period); l.since != now {
		l.since, l.own = now, map[string]uint64{}
	}
	l.own[customer]++
	return l.own[customer] <= l.share
}
