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
	"github.com/xdpfab/xdpfab/xdpfab/sync"
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
	lock, err := sync.NewMutex(ctx, sync.Place{Home: peer, Region: "locks"}, *lease)
	if err != nil {
		return err
	}
	for range *times {
		held, err := lock.Lock(ctx)
		if err != nil {
			return err
		}
		err = work(held.Context(), held.Token())
		err = errors.Join(err, held.Unlock())
		if err != nil && !errors.Is(err, sync.ErrLost) { // the work of a lost lock is for the next holder
			return err
		}
	}
	return nil
}

// work stands for a write to what the lock protects, which goes with the token and stops
// when the context ends.
func work(ctx context.Context, token uint64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Println("working as holder", token)
	return nil
}
