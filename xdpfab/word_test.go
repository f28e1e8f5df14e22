// SPDX-License-Identifier: Apache-2.0

package xdpfab_test

import (
	"errors"
	"math"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// A word that a region does not have is refused, whatever the index, and whether the
// region's size is known or not.
func TestWordAtOutside(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	found, err := p.Lookup(ctx(t), "r")
	if err != nil {
		t.Fatal(err)
	}
	words := found.Size / 8
	for _, r := range []xdpfab.RemoteRegion{found, {Key: found.Key}} {
		if err := xdpfab.WordAt[uint64](p, r, words-1).Store(ctx(t), 1); err != nil {
			t.Errorf("the last word: %v", err)
		}
		for _, index := range []uint64{words, 1 << 61, math.MaxUint64 / 8, math.MaxUint64} {
			err := xdpfab.WordAt[uint64](p, r, index).Store(ctx(t), 1)
			if !errors.Is(err, xdpfab.ErrOutOfBounds) || !errors.Is(err, xdpfab.ErrNotExecuted) {
				t.Errorf("word %d: %v, want ErrOutOfBounds and ErrNotExecuted", index, err)
			}
		}
	}
}

// Every operation in every form does on a remote word, and on words of a vector, what it
// does on local memory, and what is not defined is ErrOpNotSupported.
func testEveryOperation[T xdpfab.Number](t *testing.T, p *xdpfab.Peer, dt atomic.Datatype, start, comparand, operand T) {
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
				if !errors.Is(one, xdpfab.ErrOpNotSupported) || !errors.Is(many, xdpfab.ErrOpNotSupported) {
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
func locally[T xdpfab.Number](t *testing.T, f atomic.Func, op atomic.Op, dt atomic.Datatype, start, comparand, operand T) T {
	t.Helper()
	target := xdpfab.AppendBytes(make([]byte, 0, 64), start)
	result := make([]byte, len(target))
	if err := atomic.Apply(f, op, dt, target, xdpfab.Bytes(operand), xdpfab.Bytes(comparand), result, 1); err != nil {
		t.Fatal(err)
	}
	return xdpfab.Values[T](target)[0]
}

func TestEveryOperation(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
	p, err := f.client.Dial(ctx(t), f.server.Name(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("uint64", func(t *testing.T) { testEveryOperation[uint64](t, p, atomic.Uint64, 12, 10, 7) })
	t.Run("int16", func(t *testing.T) { testEveryOperation[int16](t, p, atomic.Int16, -12, -12, 7) })
	t.Run("uint8", func(t *testing.T) { testEveryOperation[uint8](t, p, atomic.Uint8, 12, 13, 0) })
	t.Run("float32", func(t *testing.T) { testEveryOperation[float32](t, p, atomic.Float, 0.5, 0.25, 3) })
	t.Run("float64", func(t *testing.T) { testEveryOperation[float64](t, p, atomic.Double, 0.5, 0.5, -3) })
}

// A compare-and-exchange returns what was there. That of floats is numeric.
func TestCompareAndExchange(t *testing.T) {
	f := setUp(t, xdpfab.DomainAttr{}, 64)
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
