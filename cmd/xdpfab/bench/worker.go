// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/histogram"
	"github.com/xdpfab/xdpfab/internal/load"
)

// phase describes how far a run is; Run is its sole writer.
type phase struct{ v atomic.Int32 }

const (
	warming int32 = iota
	measuring
	stopping
)

// loader keeps operations in flight. One goroutine uses it at a time.
type loader interface {
	// turn posts what there is room for, at most so many posts, and takes completions.
	turn(ctx context.Context, most uint64) error
	// drain waits until nothing is in flight.
	drain(ctx context.Context) error
	// posted returns how many posts have been made, without those in flight.
	posted() uint64
	done() uint64 // operations that completed with success
	latency() histogram.Histogram
}

// worker keeps one endpoint's window full. Only its own goroutine touches its fields,
// apart from shown.
type worker struct {
	loader
	phase    *phase
	target   uint64 // posts to measure
	begun    uint64 // posts when measuring began
	before   uint64 // operations done then
	measured uint64 // operations done since
	err      error  // the first failure

	warm, start func() // told of the first turn's end, and of the begin of measuring

	shown atomic.Uint64 // measured, for whoever looks on; the worker writes it
}

// run posts until the phase says stop, or the target is reached, and then waits until
// nothing is in flight.
func (w *worker) run(ctx context.Context) {
	begun := false
	defer w.warm()
	defer w.start()
	for ; w.err == nil; w.warm() {
		p := w.phase.v.Load()
		if p == measuring && !begun {
			begun = true
			w.start()
			w.begun, w.before = w.posted(), w.done()
			w.latency().Reset()
		}
		left := uint64(math.MaxUint64)
		if begun {
			left = w.target - min(w.posted()-w.begun, w.target)
		}
		if p == stopping || left == 0 {
			break
		}
		w.err = w.turn(ctx, left)
		w.count(begun)
	}
	if w.err == nil { // else what is in flight may never complete: its peer is gone, perhaps
		w.err = w.drain(ctx)
	}
	w.count(begun)
}

func (w *worker) count(begun bool) {
	if begun {
		w.measured = w.done() - w.before
		w.shown.Store(w.measured)
	}
}

// atomics is a loader of atomic operations.
type atomics struct {
	*load.Generator
	wait bool // for completions
}

func (a atomics) turn(ctx context.Context, most uint64) error {
	// what is in flight counts for the target
	most -= min(most, uint64(a.InFlight()))
	if err := a.Fill(int(min(most, uint64(a.Free())))); err != nil {
		return err
	}
	return a.Collect(ctx, a.wait)
}

func (a atomics) drain(ctx context.Context) error {
	for a.InFlight() > 0 {
		if err := a.Collect(ctx, true); err != nil {
			return err
		}
	}
	return nil
}

func (a atomics) posted() uint64               { return a.Posts - uint64(a.InFlight()) }
func (a atomics) done() uint64                 { return a.Done }
func (a atomics) latency() histogram.Histogram { return a.Latency }

// transfers is a loader of messages, writes or reads.
type transfers struct{ *load.Transfer }

func (t transfers) turn(ctx context.Context, _ uint64) error { return t.Step(ctx) }
func (t transfers) drain(ctx context.Context) error          { return t.Drain(ctx) }
func (t transfers) posted() uint64                           { return t.Done }
func (t transfers) done() uint64                             { return t.Done }
func (t transfers) latency() histogram.Histogram             { return t.Latency }

// arrivals is a loader of messages that come from the peer.
type arrivals struct{ transfers }

func (a arrivals) turn(ctx context.Context, _ uint64) error { return a.ServeStep(ctx) }
func (a arrivals) drain(context.Context) error              { return nil } // the peer sends until it is told to end
func (a arrivals) posted() uint64                           { return a.Messages() }
func (a arrivals) done() uint64                             { return a.Messages() }
