// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// A word that a region does not have is refused, whatever the index, and whether the
// region's size is known or not.
func TestWordAtOutside(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	words := found.Size / 8
	for _, r := range []fi.RemoteRegion{found, {Key: found.Key}} {
		if err := xdpfab.WordAt[uint64](p, r, words-1).Store(ctx(t), 1); err != nil {
			t.Errorf("the last word: %v", err)
		}
		for _, index := range []uint64{words, 1 << 61, math.MaxUint64 / 8, math.MaxUint64} {
			err := xdpfab.WordAt[uint64](p, r, index).Store(ctx(t), 1)
			if !errors.Is(err, fi.ErrOutOfBounds) || !errors.Is(err, fi.ErrNotExecuted) {
				t.Errorf("word %d: %v, want ErrOutOfBounds and ErrNotExecuted", index, err)
			}
		}
	}
}

// Every operation in every form does on a remote word, and on words of a vector, what it
// does on local memory, and what is not defined is ErrOpNotSupported.
func testEveryOperation[T xdpfab.Element](t *testing.T, p *xdpfab.Peer, dt atomic.Datatype, start, comparand, operand T) {
	v, err := xdpfab.Vector[T](ctx(t), p, "r")
	if err != nil {
		t.Fatal(err)
	}
	w, err := xdpfab.Word[T](ctx(t), p, "r", 1)
	if err != nil {
		t.Fatal(err)
	}
	at, comparands, operands := []uint64{2, 5}, []T{comparand, comparand}, []T{operand, operand}
	for op := range atomic.Op(atomic.NumOps) {
		for f := range atomic.Func(atomic.NumFuncs) {
			if err := errors.Join(w.Store(ctx(t), start), v.Store(ctx(t), at, []T{start, start})); err != nil {
				t.Fatal(err)
			}
			var was T
			olds := make([]T, 2)
			var one, many error
			switch f {
			case atomic.Base:
				one, many = w.Apply(ctx(t), op, operand), v.Apply(ctx(t), op, at, operands)
			case atomic.Fetch:
				was, one = w.Fetch(ctx(t), op, operand)
				many = v.Fetch(ctx(t), op, at, operands, olds)
			case atomic.Compare:
				was, one = w.Compare(ctx(t), op, comparand, operand)
				many = v.Compare(ctx(t), op, at, comparands, operands, olds)
			}
			if !atomic.Valid(f, op, dt) {
				if !errors.Is(one, fi.ErrOpNotSupported) || !errors.Is(many, fi.ErrOpNotSupported) {
					t.Errorf("%v %v: %v and %v, want ErrOpNotSupported", f, op, one, many)
				}
				continue
			}
			if one != nil || many != nil {
				t.Errorf("%v %v: %v, %v", f, op, one, many)
			}
			if f != atomic.Base && (was != start || olds[0] != start || olds[1] != start) {
				t.Errorf("%v %v: was %v and %v, want %v", f, op, was, olds, start)
			}
			want := locally(t, f, op, dt, start, comparand, operand)
			got := make([]T, 2)
			if err := v.Load(ctx(t), at, got); err != nil || got[0] != want || got[1] != want {
				t.Errorf("%v %v: words are %v, want %v; %v", f, op, got, want, err)
			}
			if x, err := w.Load(ctx(t)); err != nil || x != want {
				t.Errorf("%v %v: the word is %v, want %v; %v", f, op, x, want, err)
			}
		}
	}
}

// locally is the result of an operation on start in local memory.
func locally[T xdpfab.Element](t *testing.T, f atomic.Func, op atomic.Op, dt atomic.Datatype, start, comparand, operand T) T {
	t.Helper()
	target := xdpfab.AppendBytes(make([]byte, 0, 64), start)
	result := make([]byte, len(target))
	if err := atomic.Apply(f, op, dt, target, xdpfab.Bytes(operand), xdpfab.Bytes(comparand), result, 1); err != nil {
		t.Fatal(err)
	}
	return xdpfab.Values[T](target)[0]
}

func TestEveryOperation(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("uint64", func(t *testing.T) { testEveryOperation[uint64](t, p, atomic.Uint64, 12, 10, 7) })
	t.Run("int16", func(t *testing.T) { testEveryOperation[int16](t, p, atomic.Int16, -12, -12, 7) })
	t.Run("uint8", func(t *testing.T) { testEveryOperation[uint8](t, p, atomic.Uint8, 12, 13, 0) })
	t.Run("float32", func(t *testing.T) { testEveryOperation[float32](t, p, atomic.Float, 0.5, 0.25, 3) })
	t.Run("float64", func(t *testing.T) { testEveryOperation[float64](t, p, atomic.Double, 0.5, 0.5, -3) })
	t.Run("complex64", func(t *testing.T) { testEveryOperation[complex64](t, p, atomic.FloatComplex, 1+2i, 1+2i, 3-1i) })
	t.Run("complex128", func(t *testing.T) { testEveryOperation[complex128](t, p, atomic.DoubleComplex, 1+2i, 1-2i, 3-1i) })
	t.Run("U128", func(t *testing.T) {
		testEveryOperation(t, p, atomic.Uint128, xdpfab.U128{Lo: 1 << 63, Hi: 4}, xdpfab.U128{Lo: 1, Hi: 4}, xdpfab.U128{Lo: 1 << 63})
	})
	t.Run("I128", func(t *testing.T) {
		testEveryOperation(t, p, atomic.Int128, xdpfab.I128{Lo: 3, Hi: -1}, xdpfab.I128{Lo: 3, Hi: -1}, xdpfab.I128{Lo: 5, Hi: -2})
	})
}

// A compare-and-exchange returns what was there. That of floats is numeric.
func TestCompareAndExchange(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	n, err := xdpfab.Word[int32](ctx(t), p, "r", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		old, new, was int32
		swapped       bool
	}{{1, 2, 0, false}, {0, -3, 0, true}, {0, 4, -3, false}, {-3, 4, -3, true}} {
		was, swapped, err := n.CompareAndExchange(ctx(t), tt.old, tt.new)
		if was != tt.was || swapped != tt.swapped || err != nil {
			t.Errorf("%d to %d: was %d, swapped %v, %v; want %d, %v", tt.old, tt.new, was, swapped, err, tt.was, tt.swapped)
		}
	}
	x, err := xdpfab.Word[float64](ctx(t), p, "r", 1)
	if err != nil {
		t.Fatal(err)
	}
	negative, nan := math.Copysign(0, -1), math.NaN()
	if was, swapped, err := x.CompareAndExchange(ctx(t), negative, nan); was != 0 || math.Signbit(was) || !swapped || err != nil {
		t.Errorf("-0 for +0: was %v, swapped %v, %v", was, swapped, err)
	}
	if was, swapped, err := x.CompareAndExchange(ctx(t), nan, 1); !math.IsNaN(was) || swapped || err != nil {
		t.Errorf("NaN for NaN: was %v, swapped %v, %v", was, swapped, err)
	}
	if swapped, err := x.CompareAndSwap(ctx(t), nan, 1); swapped || err != nil {
		t.Errorf("NaN for NaN: swapped %v, %v", swapped, err)
	}
}

// Add returns the new value of every type, of a word and of a vector's words.
func TestAddOfEveryType(t *testing.T) {
	f := setUp(t, fi.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	testAdd(t, p, xdpfab.U128{Lo: math.MaxUint64, Hi: 1}, xdpfab.U128{Lo: 2}, xdpfab.U128{Lo: 1, Hi: 2})
	testAdd(t, p, xdpfab.I128{Lo: 0, Hi: -1}, xdpfab.I128{Lo: math.MaxUint64, Hi: -1}, xdpfab.I128{Lo: math.MaxUint64, Hi: -2})
	testAdd[complex64](t, p, 1.5-2i, 1+3i, 2.5+1i)
	testAdd[complex128](t, p, 1.5-2i, 1+3i, 2.5+1i)
	testAdd[float32](t, p, 1.5, -3, -1.5)
	testAdd[float64](t, p, 1.5, -3, -1.5)
	testAdd[int8](t, p, 127, 2, -127)
	testAdd[uint16](t, p, 65535, 2, 1)
	testAdd[int32](t, p, -5, 2, -3)
	testAdd[uint64](t, p, math.MaxUint64, 2, 1)
}

func testAdd[T xdpfab.Element](t *testing.T, p *xdpfab.Peer, start, delta, want T) {
	t.Helper()
	w, err := xdpfab.Word[T](ctx(t), p, "r", 4)
	if err != nil {
		t.Fatal(err)
	}
	v, err := xdpfab.Vector[T](ctx(t), p, "r")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Store(ctx(t), start); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Add(ctx(t), delta); got != want || err != nil {
		t.Errorf("%v + %v = %v, %v, want %v", start, delta, got, err, want)
	}
	if err := w.Store(ctx(t), start); err != nil {
		t.Fatal(err)
	}
	sums := make([]T, 1)
	if err := v.AddRange(ctx(t), 4, []T{delta}, sums); sums[0] != want || err != nil {
		t.Errorf("%v + %v = %v, %v, want %v, by a vector", start, delta, sums[0], err, want)
	}
	if err := w.Store(ctx(t), start); err != nil {
		t.Fatal(err)
	}
	if got, err := w.StartAdd(ctx(t), delta).Wait(ctx(t)); got != want || err != nil {
		t.Errorf("%v + %v = %v, %v, want %v, started", start, delta, got, err, want)
	}
}
