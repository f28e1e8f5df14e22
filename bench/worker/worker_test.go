// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/bench/measure"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// pair is an initiator's domain and a target that serves the regions of s.
func pair(t *testing.T, s *settings, attr xdpfab.DomainAttr) (*xdpfab.Domain, *xdpfab.Domain) {
	t.Helper()
	attr.GiveUp = time.Minute // the peer is alive, however busy the machine is
	a, b, err := xdpfab.Pipe(attr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = a.CloseAll(), b.CloseAll() })
	memory, err := mr.Alloc(s.size, mr.AllocOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := register(b, memory, s); err != nil {
		t.Fatal(err)
	}
	ep, err := b.NewEndpoint(xdpfab.EndpointAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.Enable(); err != nil {
		t.Fatal(err)
	}
	s.peer, s.region = b.Name(0), "bench"
	return a, b
}

// output takes a report, and notes when measuring begins.
type output struct {
	bytes.Buffer
	begun atomic.Bool
}

func (o *output) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(measure.Begin)) {
		o.begun.Store(true)
	}
	return o.Buffer.Write(b)
}

// runOnce runs an initiator, which checks its sums itself, and returns its report.
func runOnce(t *testing.T, dom *xdpfab.Domain, s *settings, out *output) (r measure.Result) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	in, err := newInitiator(ctx, dom, s)
	if err != nil {
		t.Fatal(err)
	}
	in.out = out
	if err := in.run(ctx, in.measure); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || lines[0] != measure.Begin || lines[1] != measure.End {
		t.Fatalf("output %q", out.String())
	}
	if err := json.Unmarshal([]byte(lines[2]), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestInitiator(t *testing.T) {
	for name, s := range map[string]settings{
		"one at a time":  {op: "fetch", window: 1, endpoints: 1, words: 1, elements: 1, scatter: 1},
		"full window":    {op: "fetch", window: 512, endpoints: 1, words: 64, elements: 1, scatter: 1},
		"base":           {op: "base", window: 64, endpoints: 1, words: 64, elements: 1, scatter: 1},
		"compare":        {op: "compare", window: 64, endpoints: 1, words: 64, elements: 1, scatter: 1},
		"many endpoints": {op: "fetch", window: 64, endpoints: 8, words: 8, elements: 1, scatter: 1},
		"arrays":         {op: "base", window: 4, endpoints: 1, words: 2, elements: 300, scatter: 1},
		"scattered":      {op: "fetch", window: 8, endpoints: 2, words: 64, elements: 1, scatter: 100},
		"scattered base": {op: "base", window: 8, endpoints: 2, words: 64, elements: 1, scatter: 100},
		"in turn":        {op: "fetch", window: 8, endpoints: 30, words: 64, elements: 1, scatter: 10},
		"many regions":   {op: "fetch", window: 16, endpoints: 1, words: 1, elements: 1, scatter: 1, regions: 1000},
		"open loop":      {op: "fetch", window: 64, endpoints: 1, words: 64, elements: 1, scatter: 1, rate: 20000},
	} {
		t.Run(name, func(t *testing.T) {
			s.progress = fi.ProgressAuto
			s.size, s.warmup = 8192, 10*time.Millisecond
			var r measure.Result
			// A busy machine may get nothing done in a short time.
			for s.duration = 50 * time.Millisecond; r.Ops == 0 && s.duration < 30*time.Second; s.duration *= 2 {
				a, _ := pair(t, &s, xdpfab.DomainAttr{})
				r = runOnce(t, a, &s, new(output))
			}
			if r.Ops == 0 || r.Latency.Count != int64(r.Ops) || r.Latency.P50 <= 0 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// A process that makes garbage makes it while it measures, and says how much.
func TestGarbage(t *testing.T) {
	s := settings{op: "fetch", window: 1, endpoints: 1, words: 1, elements: 1, scatter: 1, progress: fi.ProgressAuto,
		size: 64, garbage: 100 << 20}
	for s.duration = 50 * time.Millisecond; s.duration < 30*time.Second; s.duration *= 2 {
		a, _ := pair(t, &s, xdpfab.DomainAttr{})
		r := runOnce(t, a, &s, new(output))
		if made := r.Extra["garbage_per_second"]; r.Ops > 0 && made > 0 && made < 2*float64(s.garbage) {
			return
		}
	}
	t.Error("no run of operations beside garbage")
}

// While nothing is answered, operations go on being due: each of them shows how late it
// was, not only the one that was in flight.
func TestOpenLoopDoesNotOmit(t *testing.T) {
	const stall, rate = 100 * time.Millisecond, 10000
	s := settings{op: "fetch", window: 1, endpoints: 1, words: 1, elements: 1, scatter: 1, progress: fi.ProgressManual, size: 64, rate: rate, duration: 2 * stall}
	a, b := pair(t, &s, xdpfab.DomainAttr{Progress: fi.ProgressManual})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	stalled := make(chan struct{})
	var out output
	go func() {
		for done := false; ctx.Err() == nil; runtime.Gosched() {
			if b.Progress() > 0 && !done && out.begun.Load() {
				time.Sleep(stall)
				close(stalled)
				done = true
			}
		}
	}()
	r := runOnce(t, a, &s, &out)
	select {
	case <-stalled:
	default:
		t.Fatalf("the target never stalled: %+v", r)
	}
	// An operation that was due in the first half of the stall waited for at least half
	// of the stall: these are 500 of some 2000 operations.
	if r.Latency.P90 < int64(stall/4) {
		t.Errorf("p90 is %v, with a target that stalled for %v of %v", time.Duration(r.Latency.P90), stall, s.duration)
	}
}

// A run that loses packets ends with sums that are right, with order and without.
func TestLossy(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		s := &settings{op: "fetch", window: 256, words: 64, endpoints: 1, elements: 1, scatter: 1, region: "bench", regions: 1, size: regionSize,
			rate: 20_000, loss: 0.1, unordered: unordered, duration: 100 * time.Millisecond}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := lossy(ctx, s); err != nil {
			t.Errorf("without order %t: %v", unordered, err)
		}
	}
}
