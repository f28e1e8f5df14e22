// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// Goroutines that share a handle make progress alike, even if the threads that step the
// engines of the nodes occupy all of Go's processors, as in a network in memory. Without
// that, one of them makes some sixty times as many additions as another, each time; on a
// busy machine a fair run may be uneven, so the test tries a few times.
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
	const most, tries = 20000, 4
	for range tries {
		done := addTogether(t, c, word, most)
		if slices.Min(done[:]) >= most/20 {
			return
		}
		t.Logf("additions of each: %v", done)
	}
	t.Errorf("in %d runs, one goroutine had made less than a twentieth of another's additions", tries)
}

// addTogether has three goroutines add to a word until one has made most additions, and
// returns the number of each.
func addTogether(t *testing.T, c context.Context, word xdpfab.Remote[uint64], most int) (done [3]int) {
	var (
		all  sync.WaitGroup
		over atomic.Bool
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
	return done
}
