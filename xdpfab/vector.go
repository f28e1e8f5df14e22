// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"slices"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// RemoteVector is a region in a peer's memory as a sequence of words. A call takes many
// words at once: those at any indexes, in any order, or, for the Range methods, those
// side by side. An index may occur several times. This is the fastest way to change
// words, since up to 182 of them travel in one frame of 1500 bytes, if they lie in the
// first 4 GiB of a region that is addressed from 0. Indexes count words. All slices of a
// call have the same length, with one value for each word.
//
// Each word changes atomically and exactly once, but the call is not a transaction. If it
// fails, some words may have changed; the error wraps ErrNotExecuted only if none has.
// After ErrOutcomeUnknown, SettleError may find out that all have, or none. Any number of
// goroutines may use a RemoteVector.
type RemoteVector[T Element] struct {
	bind *binding
	n    uint64 // words
	dt   atomic.Datatype
}

// Vector finds a region by name, at a peer or in a cluster, and returns its words of type
// T. The vector is bound to the present registration of the region: see Word.
func Vector[T Element](ctx context.Context, at Home, region string, options ...HandleOption) (RemoteVector[T], error) {
	r, err := findAt(ctx, at, region)
	if err != nil {
		return RemoteVector[T]{}, err
	}
	return vectorOf[T](at, r, options), nil
}

func vectorOf[T Element](home Home, r *place, options []HandleOption) RemoteVector[T] {
	dt := DatatypeOf[T]()
	return RemoteVector[T]{bind: bind(home, r, r.Size, options), n: r.Size / uint64(dt.Size()), dt: dt}
}

// Rebind is like [Remote.Rebind].
func (v RemoteVector[T]) Rebind(ctx context.Context) error {
	if v.bind == nil {
		return errno.Unsent(errZeroVector())
	}
	return v.bind.rebind(ctx)
}

// VectorAt returns the words of type T in a peer's region. r.Size says how many there
// are. VectorAt sends nothing. The vector is bound to a registration: see WordAt.
func VectorAt[T Element](p *Peer, r RemoteRegion, options ...HandleOption) RemoteVector[T] {
	return vectorOf[T](p, &place{r, p}, options)
}

// Len returns the number of words.
func (v RemoteVector[T]) Len() uint64 { return v.n }

// At returns the word at an index, and sends nothing. The word shares the vector's
// binding: Rebind of one is Rebind of the other. If the region has no such word, the
// methods fail with ErrOutOfBounds.
func (v RemoteVector[T]) At(index uint64) Remote[T] {
	if v.bind == nil {
		return Remote[T]{}
	}
	return wordOf[T](v.bind, index)
}

// Load stores the values of the words at the given indexes in values.
func (v RemoteVector[T]) Load(ctx context.Context, at []uint64, values []T) error {
	return v.fetch(ctx, "Load", atomic.Read, at, nil, values)
}

// Store sets the words at the given indexes to values.
func (v RemoteVector[T]) Store(ctx context.Context, at []uint64, values []T) error {
	return v.apply(ctx, "Store", atomic.Write, at, values)
}

// Swap sets the words at the given indexes to values, and stores their previous values in
// olds, which may be values itself.
func (v RemoteVector[T]) Swap(ctx context.Context, at []uint64, values, olds []T) error {
	return v.fetch(ctx, "Swap", atomic.Write, at, values, olds)
}

// Add adds deltas to the words at the given indexes, and stores their new values in sums,
// unless that is nil: then less data travels. sums may be deltas itself. Integers wrap
// around.
func (v RemoteVector[T]) Add(ctx context.Context, at []uint64, deltas, sums []T) error {
	return v.add(ctx, "Add", places{at: at, n: len(at)}, deltas, sums)
}

// CompareAndExchange sets each word at the given indexes to its value in news if it
// equals its value in olds, and stores the previous values in was. A word has been
// swapped if its value in was equals that in olds. The comparison is numeric: see
// [Remote.CompareAndExchange].
func (v RemoteVector[T]) CompareAndExchange(ctx context.Context, at []uint64, olds, news, was []T) error {
	return v.compare(ctx, "CompareAndExchange", atomic.Cswap, at, olds, news, was)
}

// CompareAndSwap sets each word at the given indexes to its value in news if it equals
// its value in olds, and stores in swapped whether it did. The comparison is numeric: see
// [Remote.CompareAndExchange].
func (v RemoteVector[T]) CompareAndSwap(ctx context.Context, at []uint64, olds, news []T, swapped []bool) error {
	if v.bind != nil && len(swapped) != len(at) {
		return errno.Unsent(v.odd("CompareAndSwap", places{at: at, n: len(at)}, "results", len(swapped)))
	}
	was := make([]T, len(at))
	err := v.do(ctx, "CompareAndSwap", wire.VerbCompare, atomic.Cswap, places{at: at, n: len(at)},
		buffers[T]{operands: news, compares: olds, results: was})
	if err != nil {
		kept := slices.Clone(olds) // the caller's may be others by then
		return later(err, func(b []byte) any { same(swapped, Values[T](b), kept); return nil })
	}
	same(swapped, was, olds)
	return nil
}

// same stores in swapped which words were as expected.
func same[T Element](swapped []bool, was, olds []T) {
	for i := range was {
		swapped[i] = was[i] == olds[i]
	}
}

// Fetch is [Remote.Fetch] for the words at the given indexes: it combines each word with
// its value in values, and stores the previous values in olds. atomic.Read needs no
// values.
func (v RemoteVector[T]) Fetch(ctx context.Context, op atomic.Op, at []uint64, values, olds []T) error {
	return v.fetch(ctx, "Fetch", op, at, values, olds)
}

// fetch runs a fetch atomic for a method.
func (v RemoteVector[T]) fetch(ctx context.Context, method string, op atomic.Op, at []uint64, values, olds []T) error {
	return into(olds, v.do(ctx, method, wire.VerbFetch, op, places{at: at, n: len(at)},
		buffers[T]{operands: values, results: olds}))
}

// Apply does what Fetch does, but has no results, so it sends less data.
func (v RemoteVector[T]) Apply(ctx context.Context, op atomic.Op, at []uint64, values []T) error {
	return v.apply(ctx, "Apply", op, at, values)
}

// apply runs an atomic for a method.
func (v RemoteVector[T]) apply(ctx context.Context, method string, op atomic.Op, at []uint64, values []T) error {
	return v.do(ctx, method, wire.VerbAtomic, op, places{at: at, n: len(at)}, buffers[T]{operands: values})
}

// Compare is [Remote.Compare] for the words at the given indexes: each word has a value
// in comparands and one in values. Compare stores the previous values in olds.
func (v RemoteVector[T]) Compare(ctx context.Context, op atomic.Op, at []uint64, comparands, values, olds []T) error {
	return v.compare(ctx, "Compare", op, at, comparands, values, olds)
}

// compare runs a compare atomic for a method.
func (v RemoteVector[T]) compare(ctx context.Context, method string, op atomic.Op, at []uint64,
	comparands, values, olds []T) error {
	return into(olds, v.do(ctx, method, wire.VerbCompare, op, places{at: at, n: len(at)},
		buffers[T]{operands: values, compares: comparands, results: olds}))
}

// LoadRange stores the values of len(values) words in values, beginning at index from. A
// range needs one index for all its words, so it sends the least data.
func (v RemoteVector[T]) LoadRange(ctx context.Context, from uint64, values []T) error {
	return into(values, v.do(ctx, "LoadRange", wire.VerbFetch, atomic.Read, places{from: from, n: len(values)},
		buffers[T]{results: values}))
}

// StoreRange sets len(values) words to values, beginning at index from.
func (v RemoteVector[T]) StoreRange(ctx context.Context, from uint64, values []T) error {
	return v.do(ctx, "StoreRange", wire.VerbAtomic, atomic.Write, places{from: from, n: len(values)},
		buffers[T]{operands: values})
}

// AddRange does what Add does, for len(deltas) words, beginning at index from.
func (v RemoteVector[T]) AddRange(ctx context.Context, from uint64, deltas, sums []T) error {
	return v.add(ctx, "AddRange", places{from: from, n: len(deltas)}, deltas, sums)
}

func (v RemoteVector[T]) add(ctx context.Context, method string, p places, deltas, sums []T) error {
	if sums == nil {
		return v.do(ctx, method, wire.VerbAtomic, atomic.Sum, p, buffers[T]{operands: deltas})
	}
	if share(deltas, sums) { // the sums are made of both
		deltas = slices.Clone(deltas)
	}
	err := v.do(ctx, method, wire.VerbFetch, atomic.Sum, p, buffers[T]{operands: deltas, results: sums})
	if err != nil {
		kept := slices.Clone(deltas) // the caller's may be others by then
		return later(err, func(was []byte) any { addTo(v.dt, sums[:ReadBytes(was, sums)], kept); return nil })
	}
	addTo(v.dt, sums, deltas)
	return nil
}

// share reports whether two slices may be of one array: those that end where it ends are.
func share[T any](x, y []T) bool {
	return cap(x) > 0 && cap(y) > 0 && &x[:cap(x)][cap(x)-1] == &y[:cap(y)][cap(y)-1]
}

// into returns an error that can be settled, with the results of the operation in a
// slice.
func into[T Element](results []T, err error) error {
	if err != nil {
		return later(err, func(was []byte) any { ReadBytes(was, results); return nil })
	}
	return nil
}
