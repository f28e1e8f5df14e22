// SPDX-License-Identifier: Apache-2.0

package limiter

import (
	"context"
	"hash/fnv"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Customers admits a quota of requests of each customer in each period.
type Customers struct {
	Words  xdpfab.RemoteVector[uint64]
	Quota  uint64
	Period time.Duration
}

// Allow reports whether a request of a customer may pass.
func (c *Customers) Allow(ctx context.Context, customer string) (bool, error) {
	one := Limiter{Word: c.Words.At(c.index(customer)), Quota: c.Quota, Period: c.Period}
	return one.Allow(ctx)
}

// index returns the word of a customer. Customers with the same word share a quota.
func (c *Customers) index(customer string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(customer))
	return h.Sum64() % c.Words.Len()
}
