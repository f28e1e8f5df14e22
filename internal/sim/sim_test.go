// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var (
	seeds = flag.Int("seeds", 0, "number of seeds that TestSim runs; 0 means 120, or 60 with -short")
	first = flag.Uint64("first", 1, "first seed that TestSim runs")
	seed  = flag.Uint64("seed", 0, "run this seed alone")
	with  = flag.String("with", "mended", "dimensions of the runs, joined by commas: mended, all, or of "+All().String())
	most  = flag.Duration("for", 0, "TestSim begins no seed after so long; 0 means that it runs all")
	keep  = flag.Bool("keep", false, "go on after a failure")
	show  = flag.Bool("show", false, "with -seed: print everything that happens")
)

// replay returns the command that repeats a failure.
const replay = "go test ./internal/sim -run 'TestSim$' -with=%s -seed=%d -show"

// TestSim runs seeds until one fails.
func TestSim(t *testing.T) {
	dims, err := ParseDims(*with)
	if err != nil {
		t.Fatal(err)
	}
	if *seed != 0 {
		runOne(t, *seed, dims)
		return
	}
	n := *seeds
	if n == 0 {
		n = 120
		if testing.Short() {
			n = 60
		}
	}
	var (
		next  atomic.Int64
		total Report
		mu    sync.Mutex
		wg    sync.WaitGroup
		start = time.Now()
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && (*keep || !t.Failed()) && (*most == 0 || time.Since(start) < *most); i = next.Add(1) - 1 {
				s := *first + uint64(i)
				r := Run(s, dims, nil)
				mu.Lock()
				total.Add(&r)
				if r.Failure != nil {
					t.Errorf("seed %d (number %d): %v\n\treplay: "+replay, s, i+1, r.Failure, *with, s)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if testing.Verbose() || *seeds != 0 {
		fmt.Printf("sim: %.1f s, %v\n", time.Since(start).Seconds(), &total)
	}
}

// runOne replays one seed.
func runOne(t *testing.T, s uint64, dims Dims) {
	var r Report
	if *show {
		r = Run(s, dims, os.Stdout)
	} else {
		r = Run(s, dims, nil)
	}
	fmt.Printf("sim: seed %d, trace %016x: %v\n", s, r.Trace, &r)
	if r.Failure != nil {
		t.Fatalf("seed %d: %v", s, r.Failure)
	}
}

// The same seed gives the same run, bit for bit; another gives another.
func TestRunsRepeat(t *testing.T) {
	t.Parallel()
	dims := All()
	seen := map[uint64]uint64{}
	for s := uint64(1); s <= 20; s++ {
		a, b := Run(s, dims, nil), Run(s, dims, nil)
		if a.Trace != b.Trace || a.counts != b.counts {
			t.Errorf("seed %d: two runs differ: %016x and %016x", s, a.Trace, b.Trace)
		}
		if other, ok := seen[a.Trace]; ok {
			t.Errorf("seeds %d and %d give the same run", s, other)
		}
		seen[a.Trace] = s
	}
}

// Dimensions have names, and no other text is taken for one.
func TestParseDims(t *testing.T) {
	for name, want := range map[string]Dims{"hours": Hours, "mended": Mended, "mended,outage": Mended | Outage, "all": All(), All().String(): All()} {
		if d, err := ParseDims(name); err != nil || d != want {
			t.Errorf("%q: %v, %v, want %v", name, d, err, want)
		}
	}
	for _, name := range []string{"", "mended,", "weeks"} {
		if d, err := ParseDims(name); err == nil {
			t.Errorf("%q: %v, want an error", name, d)
		}
	}
}
