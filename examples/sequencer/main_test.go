// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/examples/try"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

// No two programs get the same number, each gets greater and greater ones, in a bad
// network and when the memory is lost.
func TestSequencer(t *testing.T) {
	n, ctx := try.New(t, "sequences", 4096), try.Context(t)
	peer := n.Peer(ctx)
	n.Faults(try.Bad)
	var mu sync.Mutex
	var all sync.WaitGroup
	seen, half := map[uint64]bool{}, make(chan bool, 4)
	for range 4 {
		all.Go(func() {
			s, err := newSequencer(ctx, peer)
			for i, last := 0, uint64(0); i < 2000; i++ {
				var got uint64
				if err == nil {
					got, err = s.next(ctx)
				}
				mu.Lock()
				if err != nil || got <= last || seen[got] {
					t.Errorf("got %d after %d, %v; another one has it: %t", got, last, err, seen[got])
					i = 2000
				}
				seen[got], last = true, got
				mu.Unlock()
				if i == 1000 {
					half <- true
				}
			}
		})
	}
	for range 4 {
		select {
		case <-half:
		case <-ctx.Done():
			t.Fatal("the sequencers do not go on")
		}
	}
	n.Restart()
	all.Wait()
}
