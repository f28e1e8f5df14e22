// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"time"
)

// open offers operations at a fixed rate until the end, however the earlier ones fare,
// and then waits for those in flight. An operation's latency counts from when it was
// due, not from when the window had room, so that a stall shows in every operation that
// it held up (no coordinated omission).
func (in *initiator) open(ctx context.Context, end time.Duration) error {
	g := in.Generator
	interval := float64(time.Second) / in.s.rate
	start := g.Tick()
	var posted uint64
	for {
		if now := g.Tick(); now < end && ctx.Err() == nil {
			due := uint64(float64(now-start) / interval)
			for ; posted < due && g.Free() > 0; posted++ {
				at := start + time.Duration(float64(posted+1)*interval)
				more := posted+1 < due && g.Free() > 1
				if ok, err := g.Post(at, more); err != nil {
					return err
				} else if !ok {
					break
				}
			}
		} else if g.InFlight() == 0 {
			return context.Cause(ctx)
		}
		if in.meanwhile != nil {
			in.meanwhile()
		}
		if err := g.Collect(ctx, false); err != nil {
			return err
		}
	}
}
