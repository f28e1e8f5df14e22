// SPDX-License-Identifier: Apache-2.0

// Package step3 is the third limiter of docs/tutorial.md: customers.
package step3

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/xdpfab/xdpfab/examples/internal/tutorial/step2"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Limiter admits a quota of requests of each customer in each period.
type Limiter struct {
	Words  xdpfab.RemoteVector[uint64]
	Quota  uint64
	Period time.Duration
}

// Allow reports whether a request of a customer may pass.
func (l *Limiter) Allow(ctx context.Context, customer string) (bool, error) {
	one := step2.Limiter{Word: l.Words.At(l.index(customer)), Quota: l.Quota, Period: l.Period}
	return one.Allow(ctx)
}

// index returns the word of a customer. Two that meet there share a quota.
func (l *Limiter) index(customer string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(customer))
	return h.Sum64() % l.Words.Len()
}
