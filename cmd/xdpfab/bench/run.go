// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/histogram"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Peer is a node that operations go to.
type Peer struct {
	Addr   string
	Region xdpfab.RemoteRegion // its size is 0 if it is not known; messages need none
}

// run is a measurement under way.
type run struct {
	c       *Config
	dom     *xdpfab.Domain
	seed    uint64 // of what is written
	phase   phase
	targets []*target
	peers   int // targets that there will be
	workers []*worker

	warm, begun sync.WaitGroup // for the workers: see worker.warm and worker.start
}

// target is a peer with the workers that go there.
type target struct {
	Peer
	workers []*worker
	words   int // that atomic operations go to in turn
	verify  func(context.Context) (Verification, error)
	close   func(context.Context) error
}

// Run measures what a checked configuration says, and checks what the operations have
// done. Meanwhile it calls look, now and then, with the operations so far. A run whose
// context ends has a report, too.
func Run(ctx context.Context, dom *xdpfab.Domain, peers []Peer, c *Config,
	look func(elapsed time.Duration, ops uint64)) (r *Report, err error) {
	x := &run{c: c, dom: dom, peers: len(peers), seed: rand.Uint64()}
	after := context.WithoutCancel(ctx)
	defer func() {
		for _, t := range x.targets {
			if t.close != nil {
				err = errors.Join(err, t.close(after))
			}
		}
	}()
	prepare := x.transfers
	if c.Atomic() {
		prepare = x.atomics
	}
	for _, p := range peers {
		t := &target{Peer: p}
		x.targets = append(x.targets, t)
		if err := prepare(ctx, t); err != nil {
			return nil, err
		}
		x.workers = append(x.workers, t.workers...)
	}
	r = &Report{Config: c}
	if err := x.measure(ctx, r, look); err != nil {
		return nil, err
	}
	r.Interrupted = ctx.Err() != nil
	for _, t := range x.targets {
		v, err := t.verify(after)
		if err != nil {
			return nil, err
		}
		r.add(t, v)
	}
	return r, nil
}

// wait reports whether workers wait for completions, in place of polling.
func (x *run) wait() bool { return !x.c.Manual || x.c.Endpoints*x.peers > 1 }

// worker makes the worker of endpoint i of a target.
func (x *run) worker(t *target, i int, l loader) {
	x.warm.Add(1)
	x.begun.Add(1)
	w := &worker{loader: l, phase: &x.phase, target: math.MaxUint64, warm: sync.OnceFunc(x.warm.Done),
		start: sync.OnceFunc(x.begun.Done)}
	if n := x.c.Count; n > 0 {
		w.target = uint64(n / x.c.Endpoints)
		if i < n%x.c.Endpoints {
			w.target++
		}
		words := uint64(x.c.Words)
		w.target = (w.target + words - 1) / words
	}
	t.workers = append(t.workers, w)
}

// measure takes the workers through the phases and fills in the report. The first turn of
// a worker opens its session, which takes seconds on a path that loses packets. So the
// warm-up goes on until each worker has had a turn, and each measures at least one.
func (x *run) measure(ctx context.Context, r *Report, look func(time.Duration, uint64)) error {
	var wg sync.WaitGroup
	finished := make(chan struct{})
	if x.c.Warmup == 0 {
		x.phase.v.Store(measuring)
	}
	for _, w := range x.workers {
		wg.Go(func() { w.run(context.WithoutCancel(ctx)) })
	}
	go func() { wg.Wait(); close(finished) }()
	if x.c.Warmup > 0 {
		wait(ctx, finished, x.c.Warmup, func() {})
		wait(ctx, all(&x.warm), math.MaxInt64, func() {})
	}
	begin := x.snapshot()
	x.phase.v.Store(measuring)
	limit := x.c.Duration
	if x.c.Count > 0 {
		limit = math.MaxInt64
	}
	show := func() { look(time.Since(begin.at), x.shown()) }
	wait(ctx, finished, limit, show)
	wait(ctx, all(&x.begun), math.MaxInt64, show)
	x.phase.v.Store(stopping)
	<-finished
	end := x.snapshot()
	all := histogram.New()
	var errs []error
	for _, w := range x.workers {
		r.Ops += w.measured
		all.Merge(w.latency())
		errs = append(errs, w.err)
	}
	r.fill(begin, end, all)
	return errors.Join(errs...)
}

// all returns a channel that is closed when the group is done.
func all(g *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() { g.Wait(); close(done) }()
	return done
}

func (x *run) shown() (ops uint64) {
	for _, w := range x.workers {
		ops += w.shown.Load()
	}
	return ops
}

// snapshot is what the process and its domain have done so far.
type snapshot struct {
	at      time.Time
	mallocs uint64
	sent    map[string]uint64 // counters of the domain
}

func (x *run) snapshot() snapshot {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	sent, _ := x.dom.Stats() // what is not known is left out
	return snapshot{time.Now(), m.Mallocs, sent}
}

// wait returns after the time given, when the workers are finished, or when the context
// ends; tick is called now and then.
func wait(ctx context.Context, finished <-chan struct{}, limit time.Duration, tick func()) {
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
			tick()
		}
	}
}
