// SPDX-License-Identifier: Apache-2.0

// Command leaderboard keeps the best score of each player on another node. Any number of
// programs can post scores, and the highest one stays.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"

	"github.com/xdpfab/xdpfab/examples/start"
	"github.com/xdpfab/xdpfab/xdpfab"
)

var games = flag.Int("n", 1000, "number of games to play")

// players is the number of players. Each has a word.
const players = 512

func main() { start.Main(start.Region("scores", 8*players), run) }

func run(ctx context.Context, dom *xdpfab.Domain, home string) error {
	peer, err := dom.Dial(ctx, home)
	if err != nil {
		return err
	}
	defer peer.Close()
	scores, err := xdpfab.Vector[uint64](ctx, peer, "scores")
	if err != nil {
		return err
	}
	b := &board{scores: scores, best: map[uint64]uint64{}}
	for range *games {
		if err := b.post(ctx, rand.Uint64N(players), rand.Uint64N(1_000_000)); err != nil {
			return err
		}
	}
	top, err := b.top(ctx, 3)
	for i, e := range top {
		fmt.Printf("%d. player %3d  %6d\n", i+1, e.player, e.score)
	}
	return err
}
