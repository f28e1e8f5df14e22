// SPDX-License-Identifier: Apache-2.0

// Command lock does work that only one program at a time may do. If the program dies or
// loses its connection, another one continues after the lease.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/sync"
)

var (
	times = flag.Int("n", 10, "how many times to take the lock")
	lease = flag.Duration("lease", 500*time.Millisecond, "time after which the lock of a dead program is free")
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
		if err != nil && !errors.Is(err, sync.ErrLost) { // after a loss, the next holder does the work
			return err
		}
	}
	return nil
}

// work stands for a write to the resource that the lock protects. The write carries the
// token, and stops when the context ends.
func work(ctx context.Context, token uint64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	fmt.Println("working as holder", token)
	return nil
}
