// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

// None leaves a round before all have come to it, in a bad network and when the memory is
// lost.
func TestBarrier(t *testing.T) {
	*parties = 4
	n, ctx := try.New(t, "barrier", 4096), try.Context(t)
	peer := n.Peer(ctx)
	n.Faults(try.Bad)
	const last = 30
	var came [last + 1]atomic.Int32
	var all sync.WaitGroup
	for i := range uint64(4) {
		v, err := xdpfab.Vector[uint64](ctx, peer, "barrier")
		if err != nil {
			t.Fatal(err)
		}
		b := barrier{v, i}
		all.Go(func() {
			for round := uint64(1); round <= last; round++ {
				if i == 0 && round == last/2 {
					n.Restart() // while the others wait, or are about to
				}
				came[round].Add(1)
				if err := b.wait(ctx, round); err != nil {
					t.Error(err)
					return
				}
				if c := came[round].Load(); c != 4 {
					t.Errorf("party %d leaves round %d, to which %d have come", i, round, c)
				}
			}
		})
	}
	all.Wait()
}

// A barrier that waits in vain says for whom.
func TestMissing(t *testing.T) {
	*parties, *self, *rounds = 3, 1, 1
	n := try.New(t, "barrier", 4096)
	ctx, leave := context.WithCancel(try.Context(t))
	go func() {
		for executed := uint64(0); executed < 50 && ctx.Err() == nil; { // it has looked several times
			stats, err := n.Home.Stats()
			if err != nil {
				t.Error(err)
				break
			}
			executed = stats["ops_executed"]
			time.Sleep(time.Millisecond)
		}
		leave()
	}()
	if err := run(ctx, n.Client, n.Addr); err == nil || !strings.Contains(err.Error(), "[0 2]") {
		t.Errorf("%v; want parties 0 and 2 to be missing", err)
	}
}

func TestRun(t *testing.T) {
	*parties, *self, *rounds = 3, -1, 5
	n := try.New(t, "barrier", 4096)
	if err := run(try.Context(t), n.Client, n.Addr); err != nil {
		t.Error(err)
	}
}
