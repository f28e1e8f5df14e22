// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/xdpfab/xdpfab/internal/histogram"
	"github.com/xdpfab/xdpfab/internal/load"
)

// phase describes how far a run is; bench.run is its sole writer.
type phase struct{ v atomic.Int32 }

const (
	warming int32 = iota
	measuring
	stopping
)

// worker keeps one endpoint's window full. Only its own goroutine touches its fields,
// apart from shown.
type worker struct {
	*load.Generator
	b        *bench
	target   uint64 // operations to measure
	posted   uint64 // posts when measuring began, apart from those in flight
	done     uint64 // completions when measuring began
	measured uint64 // completions since measuring began
	err      error  // the first failure

	shown atomic.Uint64 // measured, for the progress line; the worker writes it
}

func newWorker(ctx context.Context, b *bench, index int) (*worker, error) {
	// Endpoints begin at different words, so that they rarely change the same one.
	g, err := b.generator(ctx, b.f.window, index*b.words/b.f.endpoints)
	if err != nil {
		return nil, err
	}
	w := &worker{Generator: g, b: b, target: math.MaxUint64}
	if n := b.f.count; n > 0 {
		w.target = uint64(n / b.f.endpoints)
		if index < n%b.f.endpoints {
			w.target++
		}
	}
	return w, nil
}

// run posts until the phase says stop, or the target is reached, and then waits until
// nothing is in flight.
func (w *worker) run(ctx context.Context) {
	begun := false
	for {
		phase := w.b.phase.v.Load()
		if phase == measuring && !begun {
			begun = true
			w.posted, w.done, w.measured = w.Posts-uint64(w.InFlight()), w.Done, 0
			w.Latency.Reset()
		}
		if w.err == nil && phase != stopping {
			w.fill(begun)
		}
		if w.InFlight() == 0 {
			return // nothing was posted, nothing is in flight
		}
		if err := w.Collect(ctx, true); err != nil {
			w.fail(err)
		}
		w.measured = w.Done - w.done
		w.shown.Store(w.measured)
	}
}

// fill posts until the window is full, or the target is reached.
func (w *worker) fill(begun bool) {
	n := w.Free()
	if left := w.target - (w.Posts - w.posted); begun && uint64(n) > left {
		n = int(left)
	}
	if err := w.Fill(n); err != nil {
		w.fail(err)
	}
}

func (w *worker) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// run takes the workers through the phases and fills the report.
func (b *bench) run(ctx context.Context, a *app, r *benchReport) error {
	var wg sync.WaitGroup
	finished := make(chan struct{})
	if b.f.warmup == 0 {
		b.phase.v.Store(measuring)
	}
	for _, w := range b.workers {
		wg.Go(func() { w.run(context.WithoutCancel(ctx)) })
	}
	go func() { wg.Wait(); close(finished) }()
	b.wait(ctx, finished, b.f.warmup, nil)
	var before, after runtime.MemStats
	resent := b.cl.resent()
	sentBefore, packetsBefore := b.cl.sent()
	runtime.ReadMemStats(&before)
	start := time.Now()
	b.phase.v.Store(measuring)
	limit := b.f.duration
	if b.f.count > 0 {
		limit = math.MaxInt64
	}
	b.wait(ctx, finished, limit, func() { b.progressLine(a, time.Since(start)) })
	b.phase.v.Store(stopping)
	<-finished
	r.Seconds = time.Since(start).Seconds()
	runtime.ReadMemStats(&after)
	all := histogram.New()
	var errs []error
	for _, w := range b.workers {
		r.Ops += w.measured
		all.Merge(w.Latency)
		errs = append(errs, w.err)
	}
	r.Latency = all.Percentiles()
	r.OpsPerSecond = float64(r.Ops) / r.Seconds
	r.AllocsPerOp = float64(after.Mallocs-before.Mallocs) / float64(max(r.Ops, 1))
	r.Resent = b.cl.resent() - resent
	sent, packets := b.cl.sent()
	r.OpsPerPacket = float64(sent-sentBefore) / float64(max(packets-packetsBefore, 1))
	if a.showProgress() {
		fmt.Fprint(a.err, "\r\x1b[K")
	}
	return errors.Join(errs...)
}

// wait returns after the time given, when the workers are finished, or when the
// context ends; tick is called now and then.
func (b *bench) wait(ctx context.Context, finished <-chan struct{}, limit time.Duration, tick func()) {
	end := time.NewTimer(limit)
	defer end.Stop()
	ticker := time.NewTicker(250 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-end.C:
			return
		case <-finished:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
			if tick != nil {
				tick()
			}
		}
	}
}

// showProgress reports whether a person is likely to watch the run.
func (a *app) showProgress() bool { return a.tty && !a.json }

func (b *bench) progressLine(a *app, elapsed time.Duration) {
	if !a.showProgress() {
		return
	}
	var n uint64
	for _, w := range b.workers {
		n += w.shown.Load()
	}
	fmt.Fprintf(a.err, "\r\x1b[K%.1f s  %d operations  %s/s", elapsed.Seconds(), n,
		magnitude(float64(n)/elapsed.Seconds()))
}

// sent returns how many operations and packets have left so far.
func (c *client) sent() (ops, packets uint64) {
	all, err := c.dom.Stats()
	if err != nil {
		return 0, 0
	}
	return all["ops_sent"], all["packets_sent"]
}
