// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// A word of a vector is the word at its index, bound as the vector is.
func TestVectorAt(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, _ := dialWord[uint64](t, f)
	v, err := xdpfab.Vector[uint32](ctx(t), p, "r")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := v.At(v.Len()-1).Add(ctx(t), 5); n != 5 || err != nil {
		t.Errorf("the last word: %d, %v", n, err)
	}
	got := make([]uint32, 2)
	if err := v.LoadRange(ctx(t), v.Len()-2, got); err != nil || !slices.Equal(got, []uint32{0, 5}) {
		t.Errorf("the vector's end is %v, %v", got, err)
	}
	for _, index := range []uint64{v.Len(), v.Len() + 1, math.MaxUint64 / 4, math.MaxUint64} {
		_, err := v.At(index).Load(ctx(t))
		want := fmt.Sprintf(`word %d of region "r", which has %d words of 4 bytes: beyond`, index, v.Len())
		if !errors.Is(err, xdpfab.ErrOutOfBounds) || !strings.Contains(err.Error(), want) {
			t.Errorf("word %d of %d: %v, want %s", index, v.Len(), err, want)
		}
	}
	r, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	r.Size = 8 // a part of it
	if _, err := xdpfab.VectorAt[uint32](p, r).At(2).Load(ctx(t)); !errors.Is(err, xdpfab.ErrOutOfBounds) {
		t.Errorf("a word behind the vector, in the region: %v", err)
	}
	if _, err := (xdpfab.RemoteVector[uint32]{}).At(0).Load(ctx(t)); !errors.Is(err, xdpfab.ErrClosed) {
		t.Errorf("of a zero value: %v", err)
	}

	w := v.At(1)
	if err := f.region.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.server.NewRegion("r", 64<<10); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Load(ctx(t)); !errors.Is(err, xdpfab.ErrPeerRestarted) {
		t.Errorf("of a region that is gone: %v", err)
	}
	if err := v.Rebind(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if n, err := w.Add(ctx(t), 2); n != 2 || err != nil {
		t.Errorf("after Rebind of the vector: %d, %v", n, err)
	}
}

// A vector's compare-and-swap tells of each word whether it was swapped, in any place and
// also of one that is named twice.
func TestVectorCompareAndSwap(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, _ := dialWord[uint64](t, f)
	v, err := xdpfab.Vector[float64](ctx(t), p, "r")
	if err != nil {
		t.Fatal(err)
	}
	if err := v.StoreRange(ctx(t), 0, []float64{1, 2, math.Copysign(0, -1), math.NaN()}); err != nil {
		t.Fatal(err)
	}
	swapped := []bool{false, true, false, true, false}
	err = v.CompareAndSwap(ctx(t), []uint64{0, 1, 2, 3, 0}, []float64{1, 1, 0, math.NaN(), 7}, []float64{7, 7, 7, 7, 8}, swapped)
	if want := []bool{true, false, true, false, true}; err != nil || !slices.Equal(swapped, want) {
		t.Errorf("swapped %v, %v, want %v", swapped, err, want)
	}
	got := make([]float64, 4)
	if err := v.LoadRange(ctx(t), 0, got); err != nil || fmt.Sprint(got) != "[8 2 7 NaN]" {
		t.Errorf("%v, %v", got, err)
	}
	for n := range 3 {
		err := v.CompareAndSwap(ctx(t), []uint64{0, 1}, []float64{1, 1}[:min(n, 2)], []float64{1, 1}, make([]bool, 3-n))
		if !errors.Is(err, xdpfab.ErrLength) {
			t.Errorf("%d olds and room for %d: %v", n, 3-n, err)
		}
	}
}
