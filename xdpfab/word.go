// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Remote is a word in a peer's memory, with the methods of the types of sync/atomic.
// Every method waits until the operation has run on the peer, exactly once, but for the
// Start methods, which do not wait. If a method fails, errors.Is finds in its error what
// is known of the operation: ErrNotExecuted, ErrOutcomeUnknown or ErrPeerRestarted. When
// the context ends, an operation that has not left yet is not executed; if it has left,
// its outcome is unknown, and Settle waits for it. A Remote may be used by many
// goroutines.
type Remote[T Element] struct {
	bind   *binding
	index  uint64
	offset uint64 // bytes from the first one of the region
	dt     atomic.Datatype
	size   int
}

// Word returns the word of type T at the given index of a region of a peer or of a
// cluster, which is found by name: Word[uint64](ctx, peer, "counters", 3) is the eight
// bytes at offset 24, however the peer addresses the region. It is short for Peer.Lookup
// and WordAt, and fails with ErrOutOfBounds when the region has no such word.
//
// The word is bound to the registration that is found: after a restart of the peer, or
// when it has registered the region anew, every method fails with ErrPeerRestarted until
// Rebind; with AutoRebind the word is bound again by itself.
func Word[T Element](ctx context.Context, at Home, region string, index uint64, options ...HandleOption) (
	Remote[T], error) {
	r, err := findAt(ctx, at, region)
	if err != nil {
		return Remote[T]{}, err
	}
	size := uint64(DatatypeOf[T]().Size())
	if index >= r.Size/size {
		return Remote[T]{}, errno.Unsent(fmt.Errorf("xdpfab: word %d of region %q, which has %d words of %d bytes: %w",
			index, region, r.Size/size, size, ErrOutOfBounds))
	}
	return wordAt[T](at, r, index, options), nil
}

// WordAt returns the word of type T at the given index of a peer's region: index counts
// words, as Word's does, not bytes. Nothing is sent. If the region has no such word, the
// methods fail with ErrOutOfBounds.
//
// The word is bound to the registration that r describes, as Word says. If r has no
// Incarnation, the word is bound to none, and means any region that has the key: at most
// the operations that wait when a restart of the peer is noticed report it, and later
// ones run on the new memory. Without a Name it cannot be bound again.
func WordAt[T Element](p *Peer, r RemoteRegion, index uint64, options ...HandleOption) Remote[T] {
	return wordAt[T](p, &place{r, p}, index, options)
}

func wordAt[T Element](home Home, r *place, index uint64, options []HandleOption) Remote[T] {
	size := uint64(DatatypeOf[T]().Size())
	return wordOf[T](bind(home, r, beginning(index, size)+size, options), index)
}

// wordOf returns the word at an index of a registration.
func wordOf[T Element](b *binding, index uint64) Remote[T] {
	dt := DatatypeOf[T]()
	return Remote[T]{bind: b, index: index, offset: beginning(index, uint64(dt.Size())), dt: dt, size: dt.Size()}
}

// beginning returns the offset of the word at an index. If it would overflow, it is that
// of another word that no region has.
func beginning(index, size uint64) uint64 { return min(index, math.MaxUint64/size-1) * size }

// Rebind looks the word's region up again by its name, after ErrPeerRestarted: from now
// on the word, and its copies, mean the present registration.
func (r Remote[T]) Rebind(ctx context.Context) error {
	if r.bind == nil {
		return errno.Unsent(errno.Refuse(ErrClosed, "xdpfab: the Remote is a zero value: make it with Word or WordAt"))
	}
	return r.bind.rebind(ctx)
}

// Load returns the word's value.
func (r Remote[T]) Load(ctx context.Context) (T, error) { return r.Fetch(ctx, atomic.Read, *new(T)) }

// Store sets the word to v.
func (r Remote[T]) Store(ctx context.Context, v T) error { return r.Apply(ctx, atomic.Write, v) }

// Swap sets the word to v and returns its previous value.
func (r Remote[T]) Swap(ctx context.Context, v T) (old T, err error) {
	return r.Fetch(ctx, atomic.Write, v)
}

// Add adds delta and returns the new value. Integers wrap around.
func (r Remote[T]) Add(ctx context.Context, delta T) (new T, err error) {
	old, err := r.fetch(ctx, atomic.Sum, delta)
	if err != nil {
		return new, later(err, func(was []byte) T { return sum(r.dt, elementOf[T](was), delta) })
	}
	return sum(r.dt, old, delta), nil
}

// CompareAndSwap sets the word to new if it is old, and reports whether it did. The
// comparison is numeric, as [Remote.CompareAndExchange] says.
func (r Remote[T]) CompareAndSwap(ctx context.Context, old, new T) (swapped bool, err error) {
	was, err := r.compare(ctx, atomic.Cswap, old, new)
	if err != nil {
		return false, later(err, func(was []byte) bool { return elementOf[T](was) == old })
	}
	return was == old, nil
}

// CompareAndExchange is CompareAndSwap, and also returns the previous value: a loop whose
// exchange fails continues with that value, and needs no Load in between.
//
// The comparison is numeric. Of floats, +0 equals -0, so that a word of +0 is swapped
// where old is -0; and NaN equals nothing, itself included, so that a loop on a word that
// is NaN never ends: swap the bits, by a handle of type uint32 or uint64, where a word
// can be NaN.
func (r Remote[T]) CompareAndExchange(ctx context.Context, old, new T) (was T, swapped bool, err error) {
	was, err = r.Compare(ctx, atomic.Cswap, old, new)
	return was, err == nil && was == old, err
}

// Fetch combines the word with v by any operation of fi_fetch_atomic(3), such as
// atomic.Prod, and returns its previous value. atomic.Read ignores v. Operations that are
// not defined on T fail with ErrOpNotSupported; so do the compare operations, which
// Compare takes.
func (r Remote[T]) Fetch(ctx context.Context, op atomic.Op, v T) (old T, err error) {
	return previous(r.fetch(ctx, op, v))
}

// Apply is Fetch without the result, so less data travels (fi_atomic(3)).
func (r Remote[T]) Apply(ctx context.Context, op atomic.Op, v T) error {
	b := toBytes(v)
	return r.do(ctx, wire.VerbAtomic, op, b[:r.size], nil, nil)
}

// Compare runs any operation of fi_compare_atomic(3), and returns the previous value of
// the word: atomic.CswapLT, say, sets the word to v if comparand is less than it.
// atomic.Mswap, on integers, sets the bits that are set in comparand to those of v.
func (r Remote[T]) Compare(ctx context.Context, op atomic.Op, comparand, v T) (old T, err error) {
	return previous(r.compare(ctx, op, comparand, v))
}

// previous returns the previous value of a word, or an error that can be settled to it.
func previous[T Element](old T, err error) (T, error) {
	if err != nil {
		return old, later(err, elementOf[T])
	}
	return old, nil
}

// compare runs a compare atomic and returns the previous value.
func (r Remote[T]) compare(ctx context.Context, op atomic.Op, comparand, v T) (old T, err error) {
	var was [wide]byte
	c, b := toBytes(comparand), toBytes(v)
	err = r.do(ctx, wire.VerbCompare, op, b[:r.size], c[:r.size], was[:r.size])
	return fromBytes[T](was), err
}

// fetch runs a fetch atomic and returns the previous value.
func (r Remote[T]) fetch(ctx context.Context, op atomic.Op, v T) (old T, err error) {
	var was [wide]byte
	b := toBytes(v)
	operand := b[:r.size]
	if op == atomic.Read {
		operand = nil
	}
	err = r.do(ctx, wire.VerbFetch, op, operand, nil, was[:r.size])
	return fromBytes[T](was), err
}

func (r Remote[T]) do(ctx context.Context, verb wire.Verb, op atomic.Op, operand, compare, result []byte) error {
	if err := r.check(verb, op); err != nil {
		return err
	}
	for attempt := 0; ; attempt++ {
		at := r.bind.at.Load()
		err := at.peer.to.Do(ctx, calls.Call{
			Verb: verb, Op: uint8(op), Datatype: uint8(r.dt), Count: 1, Key: at.Key, Incarnation: at.Incarnation,
			Offset:  at.Base + r.offset,
			Operand: operand, Compare: compare, Result: result,
		})
		if err == nil {
			return nil
		}
		if err, again := r.bind.after(ctx, err, at, attempt); !again {
			return err
		}
	}
}
