// SPDX-License-Identifier: Apache-2.0

// Command lock does work that only one program at a time may do. If the program dies, or
// is cut off, another one goes on after the lease.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/examples/internal/start"
	"github.com/xdpfab/xdpfab/xdpfab"
)

var (
	times = flag.Int("n", 10, "how often to take the lock")
	lease = flag.Duration("lease", 500*time.Millisecond, "after which the lock of a dead program is free")
)

func main() { start.Main(start.Region("locks", 4096), run) }

func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	l, err := newLock(ctx, peer, *lease)
	if err != nil {
		return err
	}
	for range *times {
		h, err := l.acquire(ctx)
		if err != nil {
			return err
		}
		err = work(h, h.number)
		h.release()
		if err != nil && !errors.Is(err, errLost) { // the work of a lost lock is for the next holder
			return err
		}
	}
	return nil
}

// work stands for a write to what the lock protects, which goes with the number and stops
// when the context ends.
func work(ctx context.Context, number uint64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Println("working as holder", number)
	return nil
}
