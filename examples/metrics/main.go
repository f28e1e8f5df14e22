// SPDX-License-Identifier: Apache-2.0

// Command metrics counts requests and their latencies in the memory of another node,
// which sums up many programs. The node runs no code for it, and any program can read the
// sums.
package main

import (
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"time"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
)

var requests = flag.Int("n", 10_000, "number of requests to measure")

// The words hold the number of requests, the number of requests that may or may not have
// been counted, and for each power of two the requests that took fewer nanoseconds.
const (
	total, unsure, buckets = 0, 1, 2
	words                  = buckets + 65
)

func main() { start.Main(start.Region("metrics", 8*words), run) }

func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	// The sums may start from 0. A reader takes a smaller value as a new start.
	sums, err := xdpfab.Vector[uint64](ctx, peer, "metrics", xdpfab.AutoRebind())
	if err != nil {
		return err
	}
	s := sink{sums: sums}
	for i := range *requests {
		s.observe(time.Duration(rand.ExpFloat64() * float64(time.Millisecond)))
		if i%1000 == 999 || i == *requests-1 {
			if err := s.flush(ctx); err != nil {
				return err
			}
		}
	}
	return s.print(ctx, os.Stdout)
}
