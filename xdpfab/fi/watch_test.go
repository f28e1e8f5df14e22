// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Close ends a watch wherever it is, although the session goes on for another use: in
// place, in the queue behind a window that is shut, or waiting for room.
func TestCloseEndsWatch(t *testing.T) {
	for _, c := range []struct {
		name  string
		calls int // in a partition, before the watch
	}{{"in place", 0}, {"behind the window", 1}, {"waiting for room", 4096}} {
		t.Run(c.name, func(t *testing.T) {
			directModes(t, func(t *testing.T, a fi.DomainAttr) {
				a.Window = 1
				f := setUp(t, a, 64)
				var uses [2]*xdpfab.Peer
				for i := range uses {
					var err error
					if uses[i], err = f.client.Dial(ctx(t), f.server.Name(0)); err != nil {
						t.Fatal(err)
					}
				}
				other, watched := uses[0], uses[1]
				_ = f.client.SetFaults(fi.Faults{Loss: 1})
				calls, cancel := context.WithCancel(context.Background())
				var wg sync.WaitGroup
				defer wg.Wait()
				defer cancel()
				for range c.calls {
					wg.Go(func() { _, _ = xdpfab.WordAt[uint64](other, fi.RemoteRegion{Key: 1}, 0).Load(calls) })
				}
				under := func(n int) {
					t.Helper()
					testnet.Eventually(t, "the calls are under way", func() bool { return callsOf(f.client, other) == n })
				}
				under(c.calls)
				watch := make(chan error, 1)
				go func() { watch <- watched.Watch(ctx(t)) }()
				under(c.calls + 1)
				if err := watched.Close(); err != nil {
					t.Fatal(err)
				}
				if err := <-watch; !errors.Is(err, fi.ErrClosed) {
					t.Errorf("the watch: %v", err)
				}
				cancel()
				_ = f.client.SetFaults(fi.Faults{})
				if _, err := xdpfab.WordAt[uint64](other, fi.RemoteRegion{Key: 1}, 0).Add(ctx(t), 1); err != nil {
					t.Errorf("the other use: %v", err)
				}
			})
		})
	}
}
