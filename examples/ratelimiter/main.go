// SPDX-License-Identifier: Apache-2.0

// Command ratelimiter admits a limited number of requests of each customer in each
// period, whichever of many programs receives them. docs/tutorial.md develops it step by
// step.
package main

import (
	"context"
	"flag"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
)

var (
	requests = flag.Int("n", 1000, "number of requests to make")
	quota    = flag.Uint64("quota", 100, "number of requests to admit for each customer and period")
	period   = flag.Duration("period", time.Second, "length of a period")
)

func main() { start.Main(start.Region("limits", 1<<16), run) }

func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	l, err := newLimiter(ctx, peer, *quota, *period)
	if err != nil {
		return err
	}
	admitted := 0
	for i := range *requests {
		if l.allow(ctx, fmt.Sprint("customer ", i%4)) {
			admitted++
		}
	}
	fmt.Printf("admitted %d of %d requests of 4 customers\n", admitted, *requests)
	return ctx.Err()
}
