// SPDX-License-Identifier: Apache-2.0

package fi_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

func testVector[T xdpfab.Number](t *testing.T, p *xdpfab.Peer) {
	v, err := xdpfab.Vector[T](ctx(t), p, "r")
	if err != nil {
		t.Fatal(err)
	}
	testRanges(t, v)
	rng := rand.New(rand.NewPCG(1, 2))
	model := make([]T, v.Len())
	all := make([]uint64, v.Len())
	for i := range all {
		all[i] = uint64(i)
	}
	if err := v.Store(ctx(t), all, model); err != nil {
		t.Fatal(err)
	}
	lengths := []int{1, 181, 5000}
	if !testing.Short() {
		lengths = []int{1, 2, 3, 181, 400, 5000}
	}
	for _, n := range lengths {
		at, deltas, want := make([]uint64, n), make([]T, n), make([]T, n)
		for i := range n {
			at[i], deltas[i] = rng.Uint64N(v.Len()), T(rng.IntN(2)+1)
			model[at[i]] += deltas[i]
			want[i] = model[at[i]]
		}
		got := make([]T, n)
		if err := v.Add(ctx(t), at, deltas, got); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d words: %v, or wrong sums", n, err)
		}
		if err := v.Add(ctx(t), at, deltas, nil); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			model[at[i]] += deltas[i]
		}
		values := make([]T, v.Len())
		if err := v.Load(ctx(t), all, values); err != nil || !slices.Equal(values, model) {
			t.Fatalf("%d words: %v, or wrong values", n, err)
		}
	}
}

// The Range forms do what the others do on the same words.
func testRanges[T xdpfab.Number](t *testing.T, v xdpfab.RemoteVector[T]) {
	for _, n := range []uint64{1, 3, 1000, v.Len()} {
		from := (v.Len() - n) / 2
		at, values := make([]uint64, n), make([]T, n)
		for i := range n {
			at[i], values[i] = from+i, T(i%50)
		}
		got, sums, olds := make([]T, n), make([]T, n), make([]T, n)
		err := errors.Join(v.StoreRange(ctx(t), from, values), v.AddRange(ctx(t), from, values, sums), v.AddRange(ctx(t), from, values, nil),
			v.Load(ctx(t), at, got), v.Swap(ctx(t), at, values, olds), v.CompareAndExchange(ctx(t), at, values, got, sums),
			v.LoadRange(ctx(t), from, values))
		if err != nil {
			t.Fatalf("%d words: %v", n, err)
		}
		for i := range n {
			if x := T(i % 50); got[i] != 3*x || olds[i] != 3*x || sums[i] != x || values[i] != 3*x {
				t.Fatalf("word %d of %d: %v, %v, %v, %v, want multiples 3, 3, 1, 3 of %v", i, n, got[i], olds[i], sums[i], values[i], x)
			}
		}
	}
}

func TestVector(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("uint64", func(t *testing.T) { testVector[uint64](t, p) })
	t.Run("int32", func(t *testing.T) { testVector[int32](t, p) })
	t.Run("uint8", func(t *testing.T) { testVector[uint8](t, p) })
	t.Run("float64", func(t *testing.T) { testVector[float64](t, p) })
	v, _ := xdpfab.Vector[uint64](ctx(t), p, "r")
	one := []uint64{1}
	done, cancel := context.WithCancel(ctx(t))
	cancel()
	for name, tt := range map[string]struct {
		got, want error
	}{
		"outside":    {v.Load(ctx(t), []uint64{8192}, one), fi.ErrOutOfBounds},
		"values":     {v.Store(ctx(t), []uint64{1, 2}, one), fi.ErrLength},
		"room":       {v.Load(ctx(t), []uint64{1, 2}, one), fi.ErrLength},
		"sums":       {v.Add(ctx(t), one, one, []uint64{}), fi.ErrLength},
		"zero":       {xdpfab.RemoteVector[uint64]{}.Load(ctx(t), one, one), fi.ErrClosed},
		"cancelled":  {v.Load(done, one, one), fi.ErrNotExecuted},
		"range ends": {v.LoadRange(ctx(t), 8191, []uint64{1, 2}), fi.ErrOutOfBounds},
		"range far":  {v.StoreRange(ctx(t), math.MaxUint64, one), fi.ErrOutOfBounds},
		"comparands": {v.CompareAndExchange(ctx(t), one, nil, one, one), fi.ErrLength},
		"no range":   {v.AddRange(ctx(t), 8192, nil, nil), nil},
		"nothing":    {v.Add(ctx(t), nil, nil, nil), nil},
		"not region": {func() error { _, err := xdpfab.Vector[int](ctx(t), p, "x"); return err }(), fi.ErrNoRegion},
	} {
		if !errors.Is(tt.got, tt.want) {
			t.Errorf("%s: %v, want %v", name, tt.got, tt.want)
		}
	}
}

// Extents whose count is not that of the message are refused.
func TestExtentsRefused(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	m := fi.Msg{Buf: binary.LittleEndian.AppendUint64(nil, 1), Count: 1, Dest: f.dest, Datatype: atomic.Uint64, Op: atomic.Sum}
	for _, xs := range [][]mr.Extent{{}, {{Count: 2}}, {{Count: 0}}, {{Count: 1}, {Count: 1}}, {{Count: 1}, {Count: 0}}} {
		m.RMA = xs
		if err := f.ep.Atomic(&m, 0); !errors.Is(err, fi.ErrCount) {
			t.Errorf("%v: %v, want ErrCount", xs, err)
		}
	}
}

// An operation on no elements says which buffer, or which list, is empty.
func TestEmptyListsAreNamed(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	b := make([]byte, 8)
	sum := fi.Msg{Dest: f.dest, Key: 1, Datatype: atomic.Uint64, Op: atomic.Sum}
	change := func(by func(m *fi.Msg)) *fi.Msg {
		m := sum
		by(&m)
		return &m
	}
	for want, err := range map[string]error{
		"xdpfab: 0 elements, since Count is 0 and Buf is empty: want 1..4294967295":        f.ep.Atomic(&sum, 0),
		"xdpfab: 0 elements, since Count is 0 and Pieces.Buf is empty: want 1..4294967295": f.ep.Atomic(change(func(m *fi.Msg) { m.Pieces = &fi.Pieces{} }), 0),
		"xdpfab: 0 elements, since Count is 0 and Result is empty: want 1..4294967295":     f.ep.FetchAtomic(change(func(m *fi.Msg) { m.Op = atomic.Read }), 0),
		"xdpfab: Count of -1 elements: want 1..4294967295, or 0 for as many as Buf holds":  f.ep.Atomic(change(func(m *fi.Msg) { m.Count = -1 }), 0),
		"xdpfab: the list of extents (RMA) is empty: want at least one, or nil for the place of Offset and Key": f.ep.Atomic(
			change(func(m *fi.Msg) { m.Buf, m.Key, m.RMA = b, 0, []mr.Extent{} }), 0),
	} {
		if !errors.Is(err, fi.ErrCount) || err.Error() != want {
			t.Errorf("%v\nwant %s", err, want)
		}
	}
}
