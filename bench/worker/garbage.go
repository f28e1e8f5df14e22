// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"flag"
	"sync/atomic"
	"time"
)

// Garbage is made in objects of a size that Go programs have, of which the last ones are
// kept. With GOGC=100 and nothing else on the heap that is a collection for each
// garbageKept bytes: at 1 GB/s some 120 a second.
const (
	garbageSize = 1 << 10
	garbageKept = 8 << 20
	// garbageBurst bounds what is made at once after a pause, so that a process that did
	// not run does not make up for it.
	garbageBurst = 16 << 20
	garbagePause = 200 * time.Microsecond
)

// ofGarbage adds the flag of the parts that can make garbage.
func (s *settings) ofGarbage(fs *flag.FlagSet) {
	fs.Int64Var(&s.garbage, "garbage", 0, "bytes of garbage a second that the process makes besides")
}

// garbage allocates at a rate.
type garbage struct {
	kept [garbageKept / garbageSize][]byte
	next int
	made atomic.Int64 // bytes
}

// makeGarbage allocates so many bytes a second until the context ends; 0 for none.
func makeGarbage(ctx context.Context, rate int64) *garbage {
	g := new(garbage)
	if rate > 0 {
		go g.run(ctx, rate)
	}
	return g
}

func (g *garbage) run(ctx context.Context, rate int64) {
	last, owed := time.Now(), 0.0
	for ctx.Err() == nil {
		now := time.Now()
		owed = min(owed+now.Sub(last).Seconds()*float64(rate), garbageBurst)
		last = now
		for ; owed >= garbageSize; owed -= garbageSize {
			g.kept[g.next] = make([]byte, garbageSize)
			g.next = (g.next + 1) % len(g.kept)
			g.made.Add(garbageSize)
		}
		time.Sleep(garbagePause)
	}
}
