// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	stdatomic "sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// phase is where a run stands; bench.run is its sole writer.
type phase struct{ v stdatomic.Int32 }

const (
	warming int32 = iota
	measuring
	stopping
)

// slot is an operation in flight. Completions carry a pointer to it.
type slot struct {
	result [wordSize]byte
	posted time.Time
}

// worker keeps one endpoint's window full. Only its own goroutine touches it,
// apart from shown.
type worker struct {
	*poster
	b         *bench
	free      []*slot
	batch     []xdpfab.Completion
	msg       xdpfab.Msg
	word      int    // that the next operation goes to
	target    uint64 // operations to measure
	posted    uint64
	measured  uint64 // completions since measuring began
	completed uint64 // all successful ones
	latency   *hdrhistogram.Histogram
	err       error // the first failure

	shown stdatomic.Uint64 // measured, for the progress line; the worker writes it
}

func newWorker(ctx context.Context, b *bench, index int) (*worker, error) {
	p, err := b.cl.newPoster(ctx, max(powerOfTwo(b.f.window), 16))
	if err != nil {
		return nil, err
	}
	op := benchOps[b.f.op]
	w := &worker{poster: p, b: b, batch: make([]xdpfab.Completion, min(b.f.window, 256)), latency: newHistogram(), target: math.MaxUint64}
	w.msg = xdpfab.Msg{Count: 1, Key: b.region.Key, Datatype: atomic.Uint64, Op: op.op}
	if op.op != atomic.Read {
		w.msg.Buf = binary.LittleEndian.AppendUint64(nil, 1)
	}
	if op.form == atomic.Compare {
		w.msg.Compare = binary.LittleEndian.AppendUint64(nil, math.MaxUint64)
	}
	if n := b.f.count; n > 0 {
		w.target = uint64(n / b.f.endpoints)
		if index < n%b.f.endpoints {
			w.target++
		}
	}
	slots := make([]slot, b.f.window)
	for i := range slots {
		w.free = append(w.free, &slots[i])
	}
	// Endpoints begin at different words, so that they meet by chance only.
	w.word = index * b.words / b.f.endpoints
	return w, nil
}

// run goes until the phase says stop, or the target is reached, and then until
// nothing is in flight.
func (w *worker) run(ctx context.Context) {
	begun := false
	for {
		phase := w.b.phase.v.Load()
		if phase == measuring && !begun {
			begun = true
			w.posted, w.measured = uint64(w.b.f.window-len(w.free)), 0
			w.latency.Reset()
		}
		if w.err == nil && phase != stopping && !(begun && w.posted >= w.target) {
			w.fill(begun)
		}
		if len(w.free) == w.b.f.window {
			return // nothing was posted, nothing is in flight
		}
		w.collect(ctx)
		w.shown.Store(w.measured)
	}
}

// fill posts until the window is full; the poller is told with the last one.
func (w *worker) fill(begun bool) {
	now := time.Now()
	op := benchOps[w.b.f.op]
	for n := len(w.free); n > 0; n-- {
		last := n == 1 || begun && w.posted+1 >= w.target
		s := w.free[n-1]
		s.posted = now
		w.msg.Context, w.msg.Addr, w.msg.Result = s, w.b.region.Base+uint64(w.word*wordSize), s.result[:]
		if op.form == atomic.Base {
			w.msg.Result = nil
		}
		flags := xdpfab.FlagMore
		if last {
			flags = 0
		}
		if err := w.post(op.form, &w.msg, flags); err != nil {
			if !errors.Is(err, xdpfab.ErrAgain) {
				w.fail(err)
			}
			return
		}
		w.free = w.free[:n-1]
		w.posted++
		if w.word++; w.word == w.b.words {
			w.word = 0
		}
		if last {
			return
		}
	}
}

// collect takes completions; when there are none it waits for one. The session's
// own give-up time bounds the wait.
func (w *worker) collect(ctx context.Context) {
	n, err := w.cq.Read(w.batch)
	switch {
	case errors.Is(err, xdpfab.ErrAvailable):
		if e, ok := w.cq.ReadErr(); ok {
			w.fail(e.Err)
			w.free = append(w.free, e.Context.(*slot))
		}
		return
	case err == nil && n == 0:
		err = w.cq.Wait(ctx, 1)
	}
	if err != nil {
		w.fail(err)
		return
	}
	now := time.Now()
	for _, c := range w.batch[:n] {
		s := c.Context.(*slot)
		record(w.latency, now.Sub(s.posted))
		w.free = append(w.free, s)
	}
	w.measured += uint64(n)
	w.completed += uint64(n)
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
	all := newHistogram()
	var errs []error
	for _, w := range b.workers {
		r.Ops += w.measured
		all.Merge(w.latency)
		errs = append(errs, w.err)
	}
	r.Latency = percentilesOf(all)
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

// showProgress tells whether somebody is watching.
func (a *app) showProgress() bool { return a.tty && !a.json }

func (b *bench) progressLine(a *app, elapsed time.Duration) {
	if !a.showProgress() {
		return
	}
	var n uint64
	for _, w := range b.workers {
		n += w.shown.Load()
	}
	fmt.Fprintf(a.err, "\r\x1b[K%.1f s  %d operations  %s/s", elapsed.Seconds(), n, magnitude(float64(n)/elapsed.Seconds()))
}

// sent is how many operations and packets have left so far.
func (c *client) sent() (ops, packets uint64) {
	all, err := c.dom.Counters()
	if err != nil {
		return 0, 0
	}
	return all["ops_sent"], all["packets_sent"]
}
