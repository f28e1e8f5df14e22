// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"context"
	"errors"
	"runtime"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// dialVector returns a vector of n words, their indexes, and as many ones.
func dialVector(t *testing.T, f *fixture, n int) (v xdpfab.RemoteVector[uint64], at, ones []uint64) {
	t.Helper()
	p, _ := dialWord[uint64](t, f)
	v, err := xdpfab.Vector[uint64](ctx(t), p, "r")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		at = append(at, uint64(i))
	}
	return v, at, slices.Repeat([]uint64{1}, n)
}

// An operation on many words allocates nothing.
func TestVectorDoesNotAllocate(t *testing.T) {
	f := setUp(t, fi.DomainAttr{Progress: fi.ProgressManual}, 64)
	v, at, ones := dialVector(t, f, 128)
	c, results := context.Background(), make([]uint64, len(at)) // a context that ends allocates when a wait sleeps
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))             // a change empties pools, as the collector does
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for name, do := range map[string]func() error{
		"add":      func() error { return v.Add(c, at, ones, results) },
		"load":     func() error { return v.Load(c, at, results) },
		"store":    func() error { return v.Store(c, at, ones) },
		"swap":     func() error { return v.Swap(c, at, ones, results) },
		"exchange": func() error { return v.CompareAndExchange(c, at, ones, ones, results) },
		"range":    func() error { return v.AddRange(c, 3, ones, results) },
	} {
		var err error
		n := testing.AllocsPerRun(20, func() { err = errors.Join(err, do()) })
		if n > 0 || err != nil {
			t.Errorf("%s allocates %v times, %v", name, n, err)
		}
	}
}

// The sums may replace the deltas, as may a part of them.
func TestVectorAddsInPlace(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	v, at, _ := dialVector(t, f, 2)
	both := []uint64{5, 6, 7}
	for _, c := range []struct{ deltas, sums, want []uint64 }{
		{both[:2], both[:2], []uint64{5, 6}},
		{both[:2], both[1:], []uint64{10, 12}},
	} {
		deltas := slices.Clone(c.deltas)
		if err := v.Add(ctx(t), at, c.deltas, c.sums); err != nil || !slices.Equal(c.sums, c.want) {
			t.Errorf("%d added: sums %d, %v, want %d", deltas, c.sums, err, c.want)
		}
	}
}

// A call that fails leaves the caller's slices as they were, also if the results were to
// replace the operands.
func TestVectorErrorLeavesResults(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	v, at, ones := dialVector(t, f, 128)
	if err := f.region.Close(); err != nil {
		t.Fatal(err)
	}
	if err := v.Swap(ctx(t), at, ones, ones); !errors.Is(err, xdpfab.ErrPeerRestarted) {
		t.Errorf("of a region that is gone: %v", err)
	}
	if slices.Contains(ones, 0) {
		t.Errorf("the call that failed wrote results: %d", ones)
	}
}
