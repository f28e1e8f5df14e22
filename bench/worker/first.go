// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// firstLimit bounds the time until the first operation completes.
const firstLimit = 8 * time.Second

// first adds to a word of the target, which may still be starting, and reports when
// the operation has completed. It dials again and again, as any program does whose peer
// starts at the same time.
func first(ctx context.Context, dom *xdpfab.Domain, s *settings) error {
	ctx, cancel := context.WithTimeout(ctx, firstLimit)
	defer cancel()
	peer, err := dom.Dial(ctx, s.peer)
	for ; err != nil; peer, err = dom.Dial(ctx, s.peer) {
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	word, err := xdpfab.Word[uint64](ctx, peer, s.region, 0)
	for ; err != nil; word, err = xdpfab.Word[uint64](ctx, peer, s.region, 0) {
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := word.Add(ctx, 1); err != nil {
		return err
	}
	fmt.Println(measure.End)
	return nil
}
