// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"maps"
	"os"
	"sync"
	"testing"

	"github.com/xdpfab/xdpfab/examples/try"
	"github.com/xdpfab/xdpfab/xdpfab"
)

func TestMain(m *testing.M) { os.Exit(try.Run(m)) }

// The best score of each player stands, in a bad network and when the memory is lost.
func TestLeaderboard(t *testing.T) {
	n, ctx := try.New(t, "scores", 8*players), try.Context(t)
	peer := n.Peer(ctx)
	n.Faults(try.Bad)
	boards := make([]*board, 4)
	var all sync.WaitGroup
	for i := range boards {
		v, err := xdpfab.Vector[uint64](ctx, peer, "scores")
		if err != nil {
			t.Fatal(err)
		}
		boards[i] = &board{scores: v, best: map[uint64]uint64{}}
		all.Go(func() {
			for j := range uint64(300) {
				if err := boards[i].post(ctx, j%7, 1+j*uint64(i+1)%997); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	want := map[uint64]uint64{}
	for _, b := range boards {
		for player, score := range b.best {
			want[player] = max(want[player], score)
		}
	}
	for _, lost := range []bool{false, true} {
		if lost {
			n.Restart()
		}
		got := map[uint64]uint64{}
		for _, b := range boards {
			top, err := b.top(ctx, 7)
			if err != nil {
				t.Fatal(err)
			}
			clear(got)
			for _, e := range top {
				got[e.player] = e.score
			}
		}
		if !maps.Equal(got, want) { // the last board has all, since those before it have posted again
			t.Errorf("memory lost: %t; the board has %v, want %v", lost, got, want)
		}
	}
	*games = 50
	if err := run(ctx, n.Client, n.Addr); err != nil {
		t.Error(err)
	}
}
