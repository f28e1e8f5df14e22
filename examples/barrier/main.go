// SPDX-License-Identifier: Apache-2.0

// Command barrier makes several programs wait for each other: none continues before all
// have arrived.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"sync"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
)

var (
	parties = flag.Int("n", 4, "number of programs")
	self    = flag.Int("self", -1, "number of this program, from 0; -1 runs all of them as goroutines of this one")
	rounds  = flag.Uint64("rounds", 10, "how many rounds to wait for")
)

func main() { start.Main(start.Region("barrier", 4096), run) }

func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	first, last := *self, *self
	if *self < 0 {
		first, last = 0, *parties-1
	}
	errs := make([]error, *parties)
	var all sync.WaitGroup
	for i := first; i <= last; i++ {
		all.Go(func() { errs[i] = party(ctx, peer, i) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("%d programs met %d times\n", *parties, *rounds)
	return nil
}

func party(ctx context.Context, peer *xdpfab.Peer, self int) error {
	v, err := xdpfab.Vector[uint64](ctx, peer, "barrier")
	if err != nil {
		return err
	}
	b := barrier{v, uint64(self)}
	for round := uint64(1); round <= *rounds; round++ {
		if err := b.wait(ctx, round); err != nil {
			return err
		}
	}
	return nil
}
