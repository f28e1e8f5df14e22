// SPDX-License-Identifier: Apache-2.0

// Command sequencer gets numbers that no other program gets, for example for orders, log
// entries or versions. It takes them from a word of another node, a block at a time, so
// that most numbers cost no round trip.
package main

import (
	"context"
	"flag"
	"fmt"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
)

var wanted = flag.Int("n", 1000, "number of numbers to get")

func main() { start.Main(start.Region("sequences", 4096), run) }

func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	s, err := newSequencer(ctx, peer)
	if err != nil {
		return err
	}
	var first, last uint64
	for i := range *wanted {
		if last, err = s.next(ctx); err != nil {
			return err
		}
		if i == 0 {
			first = last
		}
	}
	fmt.Printf("%d numbers, from %d to %d\n", *wanted, first, last)
	return nil
}
