// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/internal/load"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// kinds maps the names that the flag takes.
var kinds = map[string]load.Kind{"base": load.Add, "fetch": load.FetchAdd, "compare": load.CompareAndSwap}

// initiator keeps a window full, on one thread.
type initiator struct {
	*load.Generator
	out  io.Writer // of the report
	s    *settings
	kind load.Kind
	// meanwhile, if it is not nil, is called while operations at a fixed rate are under
	// way.
	meanwhile func()
}

func initiate(ctx context.Context, dom *xdpfab.Domain, s *settings) error {
	runtime.LockOSThread()
	if s.first {
		return first(ctx, dom, s)
	}
	in, err := newInitiator(ctx, dom, s)
	if err != nil {
		return err
	}
	return in.run(ctx, in.measure)
}

func newInitiator(ctx context.Context, dom *xdpfab.Domain, s *settings) (*initiator, error) {
	kind, ok := kinds[s.op]
	if !ok {
		return nil, fmt.Errorf("op %q: want base, fetch or compare", s.op)
	}
	peer, err := dom.Dial(ctx, s.peer)
	if err != nil {
		return nil, err
	}
	region := xdpfab.RemoteRegion{Key: s.key}
	if s.key == 0 {
		if region, err = peer.Lookup(ctx, s.region); err != nil {
			return nil, err
		}
	}
	g, err := load.New(ctx, dom, s.peer, load.Config{
		Kind: kind, Region: region, Window: s.window, Endpoints: s.endpoints, Words: s.words, Elements: s.elements,
		Scatter: s.scatter,
		Keys:    max(s.regions-1, 0), Order: s.order(),
	})
	return &initiator{Generator: g, out: os.Stdout, s: s, kind: kind}, err
}

// order returns the order that the initiator's endpoints keep.
func (s *settings) order() fi.Order {
	if s.unordered {
		return fi.OrderNone
	}
	return 0
}

// run measures, and checks that the words have grown by the number of adds that were
// acknowledged.
func (in *initiator) run(ctx context.Context, measure func(context.Context) error) error {
	before, err := in.Sum(ctx)
	if err != nil {
		return err
	}
	if err := measure(ctx); err != nil {
		return err
	}
	after, err := in.Sum(ctx)
	if err != nil {
		return err
	}
	if want := in.Done * uint64(in.s.elements); in.kind.Adds() && after-before != want {
		return fmt.Errorf("the words grew by %d, but %d adds were acknowledged", after-before, want)
	}
	return nil
}

// measure warms up and measures.
func (in *initiator) measure(ctx context.Context) error {
	loop := in.closed
	if in.s.rate > 0 {
		loop = in.open
	}
	warmup := in.s.warmup
	if in.s.at != 0 {
		warmup = time.Until(time.UnixMilli(in.s.at))
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	litter := makeGarbage(ctx, in.s.garbage)
	for warmup > 0 {
		if err := loop(ctx, in.Tick()+warmup); err != nil {
			return err
		}
		if in.s.at != 0 || in.opened() {
			break
		}
	}
	in.Latency.Reset()
	done := in.Done
	run := measure.BeginRun(in.out)
	made := litter.made.Load()
	if err := loop(ctx, in.Tick()+in.s.duration); err != nil {
		return err
	}
	result := measure.Result{Ops: in.Done - done, Latency: in.Latency.Percentiles(), Extra: map[string]float64{}}
	if in.s.garbage > 0 {
		result.Extra["garbage_per_second"] = float64(litter.made.Load()-made) / time.Since(run.Start()).Seconds()
	}
	return run.End(&result)
}

// opened reports whether each endpoint has sent a post, so that what is measured opens no
// sessions: to open one takes several round trips.
func (in *initiator) opened() bool {
	return in.Done >= uint64(in.s.endpoints)*uint64(max(in.s.scatter, 1))
}

// closed keeps the window full until the end, and then waits for the posts in flight.
func (in *initiator) closed(ctx context.Context, end time.Duration) error {
	g, wait := in.Generator, in.s.progress == fi.ProgressAuto
	for {
		if g.Now() < end && ctx.Err() == nil {
			if err := g.Fill(g.Free()); err != nil {
				return err
			}
		} else if g.InFlight() == 0 {
			return context.Cause(ctx)
		}
		if err := g.Collect(ctx, wait); err != nil {
			return err
		}
	}
}
