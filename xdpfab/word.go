// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Remote is a word in a peer's memory, with the methods of the types in sync/atomic. Each
// method waits until the operation has run on the peer, exactly once. Only the Start
// methods do not wait.
//
// The error of a method says whether the operation ran: it wraps ErrNotExecuted,
// ErrOutcomeUnknown or ErrPeerRestarted. If the context ends before the operation was
// sent, the operation does not run. If the context ends later, the outcome is unknown,
// and Settle waits for it. Any number of goroutines may use a Remote.
type Remote[T Element] struct {
	bind   *binding
	index  uint64
	offset uint64 // bytes from the first one of the region
	dt     atomic.Datatype
	size   int
}

// Word finds a region by name, at a peer or in a cluster, and returns the word of type T
// at the given index: Word[uint64](ctx, peer, "counters", 3) is the eight bytes at offset
// 24. Word does what Peer.Lookup and WordAt do together. It fails with ErrOutOfBounds if
// the region has no such word.
//
// The word is bound to the present registration of the region. When the peer has
// restarted, or has registered the region again, each method fails with ErrPeerRestarted
// until the program calls Rebind. With the option AutoRebind the word binds itself again.
func Word[T Element](ctx context.Context, at Home, region string, index uint64, options ...HandleOption) (
	Remote[T], error) {
	r, err := findAt(ctx, at, region)
	if err != nil {
		return Remote[T]{}, err
	}
	size := uint64(DatatypeOf[T]().Size())
	if index >= r.Size/size {
		return Remote[T]{}, errno.Unsent(fmt.Errorf("xdpfab: word %d of region %q, which has %d words of %d bytes: %w",
			index, region, r.Size/size, size, beyond(r.Size/size)))
	}
	return wordAt[T](at, r, index, options), nil
}

// beyond is why words cannot be used that a region lacks which has so many.
func beyond(words uint64) error {
	if words == 0 {
		return fmt.Errorf("%w: want a longer region", ErrOutOfBounds)
	}
	return fmt.Errorf("%w: want words 0 to %d, or a longer region", ErrOutOfBounds, words-1)
}

// WordAt returns the word of type T at the given index of a peer's region. The index
// counts words, not bytes. WordAt sends nothing. If the region has no such word, the
// methods fail with ErrOutOfBounds.
//
// The word is bound to the registration that r describes: see Word. If r has no
// Incarnation, the word is bound to no registration, and means whichever region has the
// key: operations that are under way when the domain notices a restart of the peer report
// it, but later ones run on the new memory. If r has no Name, Rebind fails.
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

// Rebind looks up the word's region again by its name, after ErrPeerRestarted. From then
// on the word and its copies mean the present registration.
func (r Remote[T]) Rebind(ctx context.Context) error {
	if r.bind == nil {
		return errno.Unsent(errno.Refuse(ErrClosed, "xdpfab: the Remote is a zero value: make it with Word or WordAt"))
	}
	return r.bind.rebind(ctx)
}

// Load returns the word's value.
func (r Remote[T]) Load(ctx context.Context) (T, error) {
	return previous(r.fetch(ctx, "Load", atomic.Read, *new(T)))
}

// Store sets the word to v.
func (r Remote[T]) Store(ctx context.Context, v T) error {
	return r.apply(ctx, "Store", atomic.Write, v)
}

// Swap sets the word to v and returns its previous value.
func (r Remote[T]) Swap(ctx context.Context, v T) (old T, err error) {
	return previous(r.fetch(ctx, "Swap", atomic.Write, v))
}

// Add adds delta and returns the new value. Integers wrap around.
func (r Remote[T]) Add(ctx context.Context, delta T) (new T, err error) {
	old, err := r.fetch(ctx, "Add", atomic.Sum, delta)
	if err != nil {
		return new, later(err, func(was []byte) T { return sum(r.dt, elementOf[T](was), delta) })
	}
	return sum(r.dt, old, delta), nil
}

// CompareAndSwap sets the word to new if it is old, and reports whether it did. The
// comparison is numeric, as [Remote.CompareAndExchange] says.
func (r Remote[T]) CompareAndSwap(ctx context.Context, old, new T) (swapped bool, err error) {
	was, err := r.compare(ctx, "CompareAndSwap", atomic.Cswap, old, new)
	if err != nil {
		return false, later(err, func(was []byte) bool { return elementOf[T](was) == old })
	}
	return was == old, nil
}

// CompareAndExchange does what CompareAndSwap does, and also returns the previous value.
// So a loop can go on with that value, and needs no Load.
//
// The comparison is numeric. For floats, +0 equals -0, so a word of +0 is swapped if old
// is -0. NaN does not even equal itself, so a loop on a word that is NaN never ends. If a
// word can be NaN, swap its bits, by a handle of type uint32 or uint64.
func (r Remote[T]) CompareAndExchange(ctx context.Context, old, new T) (was T, swapped bool, err error) {
	was, err = previous(r.compare(ctx, "CompareAndExchange", atomic.Cswap, old, new))
	return was, err == nil && was == old, err
}

// Fetch combines the word with v by any operation of fi_fetch_atomic(3), such as
// atomic.Prod, and returns the previous value. atomic.Read ignores v. Fetch fails with
// ErrOpNotSupported if op is not defined on T, or is one of the operations for Compare.
func (r Remote[T]) Fetch(ctx context.Context, op atomic.Op, v T) (old T, err error) {
	return previous(r.fetch(ctx, "Fetch", op, v))
}

// Apply does what Fetch does, but has no result, so it sends less data (fi_atomic(3)).
func (r Remote[T]) Apply(ctx context.Context, op atomic.Op, v T) error {
	return r.apply(ctx, "Apply", op, v)
}

// Compare runs any operation of fi_compare_atomic(3), and returns the previous value of
// the word: atomic.CswapLT, say, sets the word to v if comparand is less than it.
// atomic.Mswap, on integers, sets the bits that are set in comparand to those of v.
func (r Remote[T]) Compare(ctx context.Context, op atomic.Op, comparand, v T) (old T, err error) {
	return previous(r.compare(ctx, "Compare", op, comparand, v))
}

// previous returns the previous value of a word, or an error that can be settled to it.
func previous[T Element](old T, err error) (T, error) {
	if err != nil {
		return old, later(err, elementOf[T])
	}
	return old, nil
}

// apply runs an atomic for a method.
func (r Remote[T]) apply(ctx context.Context, method string, op atomic.Op, v T) error {
	b := toBytes(v)
	return r.do(ctx, method, wire.VerbAtomic, op, b[:r.size], nil, nil)
}

// compare runs a compare atomic for a method, and returns the previous value.
func (r Remote[T]) compare(ctx context.Context, method string, op atomic.Op, comparand, v T) (old T, err error) {
	var was [wide]byte
	c, b := toBytes(comparand), toBytes(v)
	err = r.do(ctx, method, wire.VerbCompare, op, b[:r.size], c[:r.size], was[:r.size])
	return fromBytes[T](was), err
}

// fetch runs a fetch atomic for a method, and returns the previous value.
func (r Remote[T]) fetch(ctx context.Context, method string, op atomic.Op, v T) (old T, err error) {
	var was [wide]byte
	b := toBytes(v)
	operand := b[:r.size]
	if op == atomic.Read {
		operand = nil
	}
	err = r.do(ctx, method, wire.VerbFetch, op, operand, nil, was[:r.size])
	return fromBytes[T](was), err
}

// do runs an operation for a method.
func (r Remote[T]) do(ctx context.Context, method string, verb wire.Verb, op atomic.Op,
	operand, compare, result []byte) error {
	if err := r.check(method, verb, op); err != nil {
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
		if err, again := r.bind.after(ctx, err, at, attempt, r.of(method), memory.Needs(verb, uint8(op))); !again {
			return err
		}
	}
}
