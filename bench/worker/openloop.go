// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"time"
)

// open offers operations at a fixed rate, whatever becomes of those before, until
// the end, and then takes what is in flight. An operation's latency counts from
// when it was due, not from when the window let it go: so that a stall shows in
// every operation that it held up (no coordinated omission).
func (in *initiator) open(ctx context.Context, end time.Time) error {
	interval := float64(time.Second) / in.s.rate
	start := time.Now()
	var posted uint64
	for now := start; ; {
		if now.Before(end) && ctx.Err() == nil {
			due := uint64(float64(now.Sub(start)) / interval)
			for ; posted < due && len(in.free) > 0; posted++ {
				at := start.Add(time.Duration(float64(posted+1) * interval))
				more := posted+1 < due && len(in.free) > 1
				if ok, err := in.post(at, more); err != nil {
					return err
				} else if !ok {
					break
				}
			}
		} else if len(in.free) == in.window {
			return context.Cause(ctx)
		}
		n, err := in.cq.Read(in.batch)
		now = time.Now()
		if err != nil {
			return in.failure(err)
		}
		in.retire(in.batch[:n], now)
	}
}
