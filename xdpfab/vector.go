// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"slices"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// RemoteVector is a region in a peer's memory as a sequence of words. Its methods take
// many words at once: at indexes in any order, also the same one several times, or, in
// the Range forms, side by side. That is the fastest way to reach them, since they travel
// together: up to 182 in a frame of 1500 bytes, at any indexes, if they lie in the first
// 4 GiB of a region that is addressed from 0. Indexes count words. All slices of a call
// have the same length: one value a word.
//
// Each word is treated atomically and exactly once; all of them are not one transaction.
// When a method fails, some words may have been treated, and the error says
// ErrNotExecuted only if none was. After ErrOutcomeUnknown, SettleError may find out that
// all were, or none. A RemoteVector may be used by many goroutines.
type RemoteVector[T Element] struct {
	bind *binding
	n    uint64 // words
	dt   atomic.Datatype
}

// Vector returns the words of type T in a region of a peer or of a cluster, which is
// found by name. It is bound to the registration that is found, as Word says.
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

// VectorAt returns the words of type T in a peer's region, whose Size says how many there
// are. Nothing is sent. It is bound to a registration as WordAt says.
func VectorAt[T Element](p *Peer, r RemoteRegion, options ...HandleOption) RemoteVector[T] {
	return vectorOf[T](p, &place{r, p}, options)
}

// Len returns the number of words.
func (v RemoteVector[T]) Len() uint64 { return v.n }

// At returns the word at an index, as [WordAt] does, with the vector's binding: Rebind of
// the one is Rebind of the other. Nothing is sent. If the vector has no such word, the
// methods fail with ErrOutOfBounds.
func (v RemoteVector[T]) At(index uint64) Remote[T] {
	if v.bind == nil {
		return Remote[T]{}
	}
	return wordOf[T](v.bind, index)
}

// Load stores the values of the words at the given indexes in values.
func (v RemoteVector[T]) Load(ctx context.Context, at []uint64, values []T) error {
	return v.Fetch(ctx, atomic.Read, at, nil, values)
}

// Store sets the words at the given indexes to values.
func (v RemoteVector[T]) Store(ctx context.Context, at []uint64, values []T) error {
	return v.Apply(ctx, atomic.Write, at, values)
}

// Swap sets the words at the given indexes to values, and stores their previous values in
// olds, which may be values itself.
func (v RemoteVector[T]) Swap(ctx context.Context, at []uint64, values, olds []T) error {
	return v.Fetch(ctx, atomic.Write, at, values, olds)
}

// Add adds deltas to the words at the given indexes, and stores their new values in sums,
// unless that is nil: then less data travels. sums and deltas must not overlap. Integers
// wrap around.
func (v RemoteVector[T]) Add(ctx context.Context, at []uint64, deltas, sums []T) error {
	return v.add(ctx, places{at: at, n: len(at)}, deltas, sums)
}

// CompareAndExchange sets each word at the given indexes to its value of news if it
// equals its value of olds, and stores the words' previous values in was: the words for
// which was equals olds have been swapped, as CompareAndSwap says for each. Each
// comparison is numeric, as [Remote.CompareAndExchange] says.
func (v RemoteVector[T]) CompareAndExchange(ctx context.Context, at []uint64, olds, news, was []T) error {
	return v.Compare(ctx, atomic.Cswap, at, olds, news, was)
}

// CompareAndSwap sets each word at the given indexes to its value of news if it equals
// its value of olds, and stores in swapped which ones it has set. Each comparison is
// numeric, as [Remote.CompareAndExchange] says.
func (v RemoteVector[T]) CompareAndSwap(ctx context.Context, at []uint64, olds, news []T, swapped []bool) error {
	if len(swapped) != len(at) {
		return errno.Unsent(errno.Refuse(ErrLength,
			"xdpfab: room for %d results of %d words: want one each", len(swapped), len(at)))
	}
	was := make([]T, len(at))
	err := v.do(ctx, wire.VerbCompare, atomic.Cswap, places{at: at, n: len(at)},
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

// Fetch is [Remote.Fetch] for the words at the given indexes: it combines each with its
// value of values, and stores their previous values in olds. atomic.Read takes no values.
func (v RemoteVector[T]) Fetch(ctx context.Context, op atomic.Op, at []uint64, values, olds []T) error {
	return into(olds, v.do(ctx, wire.VerbFetch, op, places{at: at, n: len(at)},
		buffers[T]{operands: values, results: olds}))
}

// Apply is Fetch without the results, so less data travels.
func (v RemoteVector[T]) Apply(ctx context.Context, op atomic.Op, at []uint64, values []T) error {
	return v.do(ctx, wire.VerbAtomic, op, places{at: at, n: len(at)}, buffers[T]{operands: values})
}

// Compare is [Remote.Compare] for the words at the given indexes, each with its own of
// comparands and values, and stores their previous values in olds.
func (v RemoteVector[T]) Compare(ctx context.Context, op atomic.Op, at []uint64, comparands, values, olds []T) error {
	return into(olds, v.do(ctx, wire.VerbCompare, op, places{at: at, n: len(at)},
		buffers[T]{operands: values, compares: comparands, results: olds}))
}

// LoadRange stores the values of len(values) words, from the one at index from on, in
// values. Words that lie side by side are named once, so a range takes fewest bytes.
func (v RemoteVector[T]) LoadRange(ctx context.Context, from uint64, values []T) error {
	return into(values, v.do(ctx, wire.VerbFetch, atomic.Read, places{from: from, n: len(values)},
		buffers[T]{results: values}))
}

// StoreRange sets len(values) words, from the one at index from on, to values.
func (v RemoteVector[T]) StoreRange(ctx context.Context, from uint64, values []T) error {
	return v.do(ctx, wire.VerbAtomic, atomic.Write, places{from: from, n: len(values)}, buffers[T]{operands: values})
}

// AddRange adds deltas to as many words, from the one at index from on, and stores their
// new values in sums, as Add does.
func (v RemoteVector[T]) AddRange(ctx context.Context, from uint64, deltas, sums []T) error {
	return v.add(ctx, places{from: from, n: len(deltas)}, deltas, sums)
}

func (v RemoteVector[T]) add(ctx context.Context, p places, deltas, sums []T) error {
	if sums == nil {
		return v.do(ctx, wire.VerbAtomic, atomic.Sum, p, buffers[T]{operands: deltas})
	}
	err := v.do(ctx, wire.VerbFetch, atomic.Sum, p, buffers[T]{operands: deltas, results: sums})
	if err != nil {
		kept := slices.Clone(deltas) // the caller's may be others by then
		return later(err, func(was []byte) any { addTo(v.dt, sums[:ReadBytes(was, sums)], kept); return nil })
	}
	addTo(v.dt, sums, deltas)
	return nil
}

// into returns an error that can be settled, with the results of the operation in a
// slice.
func into[T Element](results []T, err error) error {
	if err != nil {
		return later(err, func(was []byte) any { ReadBytes(was, results); return nil })
	}
	return nil
}
