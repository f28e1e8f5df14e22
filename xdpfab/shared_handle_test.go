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

// Goroutines that share a handle make progress alike, even if the threads that step the
// engines of the nodes occupy all of Go's processors, as in a network in memory.
func TestSharedHandleIsFair(t *testing.T) {
	w := newNetwork(t, 2)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	c := ctx(t)
	p, err := w.Node(0).Dial(c, w.Node(1).Name(0))
	if err != nil {
		t.Fatal(err)
	}
	word, err := xdpfab.Word[uint64](c, p, "w", 0)
	if err != nil {
		t.Fatal(err)
	}
	const most, sharers = 20000, 3 // of the one that has the most
	var (
		all  sync.WaitGroup
		over atomic.Bool
		done [sharers]int
	)
	for i := range done {
		all.Go(func() {
			for ; !over.Load(); done[i]++ {
				if _, err := word.Add(c, 1); err != nil {
					t.Error(err)
					return
				}
				if done[i] == most {
					over.Store(true)
				}
			}
		})
	}
	all.Wait()
	if least := slices.Min(done[:]); least < most/10 {
		t.Errorf("additions of each: %v, want at least a tenth of the most", done)
	}
}
