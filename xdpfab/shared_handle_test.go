// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// BenchmarkSharedHandle has three goroutines add to a word through one handle, while the
// threads that step the engines of the nodes occupy all of Go's processors, as in a
// network in memory. least/most compares the goroutine with the fewest additions with the
// one with the most: 1 is fair, and 0.02 was starvation (see progress.Readied).
func BenchmarkSharedHandle(b *testing.B) {
	w, err := xdpfab.NewNetwork(2)
	if err != nil {
		b.Fatal(err)
	}
	defer w.Close()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	if _, err := w.Node(1).Serve("w", 64); err != nil {
		b.Fatal(err)
	}
	p, err := w.Node(0).Dial(b.Context(), w.Node(1).Name(0))
	if err != nil {
		b.Fatal(err)
	}
	word, err := xdpfab.Word[uint64](b.Context(), p, "w", 0)
	if err != nil {
		b.Fatal(err)
	}
	var (
		all  sync.WaitGroup
		left atomic.Int64
		done [3]int
	)
	left.Store(int64(b.N))
	b.ResetTimer()
	for i := range done {
		all.Go(func() {
			for ; left.Add(-1) >= 0; done[i]++ {
				if _, err := word.Add(b.Context(), 1); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(slices.Min(done[:]))/float64(slices.Max(done[:])), "least/most")
}
