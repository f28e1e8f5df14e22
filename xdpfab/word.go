// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Number is what a remote word can hold: Go's integers and floats, and types
// made of them.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 |
		~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~uintptr |
		~float32 | ~float64
}

// Remote is a word in a peer's memory, with the methods of the types of
// sync/atomic. Every method waits until the operation has run on the peer,
// exactly once. An error says with errors.Is what is known instead:
// ErrNotExecuted, ErrOutcomeUnknown or ErrPeerRestarted. When the context ends, an
// operation that has not left yet is not executed; of one that has, the outcome is
// unknown, and OpError.Resolve waits for it. A Remote may be used by many goroutines.
type Remote[T Number] struct {
	bind   *binding
	offset uint64 // bytes from the first one of the region
	dt     atomic.Datatype
	size   int
}

// Word returns the word of type T at the given index of a peer's region, which is
// found by name: Word[uint64](ctx, peer, "counters", 3) is the eight bytes at
// offset 24, however the peer addresses the region. It is short for Peer.Lookup and
// WordAt, and fails with ErrOutOfBounds when the region has no such word.
//
// The word is bound to the registration that is found: after a restart of the peer,
// or when it has registered the region anew, every method fails with ErrPeerRestarted
// until Rebind; with AutoRebind the word is bound again by itself. A region that was
// registered anew in the same life, under a key that the provider chose, has another
// key: without AutoRebind the error is ErrNoKey then.
func Word[T Number](ctx context.Context, p *Peer, region string, index uint64, options ...HandleOption) (Remote[T], error) {
	r, err := p.Lookup(ctx, region)
	if err != nil {
		return Remote[T]{}, err
	}
	size := uint64(datatypeOf[T]().Size())
	if index >= r.Size/size {
		return Remote[T]{}, fmt.Errorf("xdpfab: word %d of region %q: it has %d of %d bytes each: %w",
			index, region, r.Size/size, size, ErrOutOfBounds)
	}
	return WordAt[T](p, r, index, options...), nil
}

// WordAt returns the word of type T at the given index of a peer's region: index
// counts words, as Word's does, not bytes. Nothing is sent. If the region has no such
// word, the methods fail with ErrOutOfBounds.
//
// The word is bound to the registration that r describes, as Word says. If r has no
// Incarnation, it is bound to none, and means whichever region has the key: of a restart
// of the peer it is told at most once, by the operations that wait when the restart is
// noticed, and later ones run on the new memory. Without a Name it cannot be bound again.
func WordAt[T Number](p *Peer, r RemoteRegion, index uint64, options ...HandleOption) Remote[T] {
	dt := datatypeOf[T]()
	size := uint64(dt.Size())
	index = min(index, math.MaxUint64/size-1) // no region has that word either, and its offset is a number
	return Remote[T]{bind: bind(p, r, (index+1)*size, options), offset: index * size, dt: dt, size: dt.Size()}
}

// Rebind looks the word's region up again by its name, after ErrPeerRestarted: from now
// on the word, and its copies, mean the present registration.
func (r Remote[T]) Rebind(ctx context.Context) error {
	if r.bind == nil {
		return fmt.Errorf("xdpfab: zero Remote: %w", ErrClosed)
	}
	return r.bind.rebind(ctx)
}

// datatypeOf maps a Go type to the datatype on the wire.
func datatypeOf[T Number]() atomic.Datatype {
	switch t := reflect.TypeFor[T](); t.Kind() {
	case reflect.Int8:
		return atomic.Int8
	case reflect.Uint8:
		return atomic.Uint8
	case reflect.Int16:
		return atomic.Int16
	case reflect.Uint16:
		return atomic.Uint16
	case reflect.Int32:
		return atomic.Int32
	case reflect.Uint32:
		return atomic.Uint32
	case reflect.Float32:
		return atomic.Float
	case reflect.Float64:
		return atomic.Double
	case reflect.Int, reflect.Int64:
		if t.Size() == 4 {
			return atomic.Int32
		}
		return atomic.Int64
	default: // uint, uint64, uintptr
		if t.Size() == 4 {
			return atomic.Uint32
		}
		return atomic.Uint64
	}
}

// Load returns the word's value.
func (r Remote[T]) Load(ctx context.Context) (T, error) {
	var b [8]byte
	err := r.do(ctx, wire.VerbFetch, atomic.Read, nil, nil, b[:r.size])
	return fromBytes[T](b), err
}

// Store sets the word to v.
func (r Remote[T]) Store(ctx context.Context, v T) error {
	b := toBytes(v)
	return r.do(ctx, wire.VerbAtomic, atomic.Write, b[:r.size], nil, nil)
}

// Swap sets the word to v and returns what it was.
func (r Remote[T]) Swap(ctx context.Context, v T) (old T, err error) {
	return r.fetch(ctx, atomic.Write, v)
}

// Add adds delta and returns the new value. Integers wrap around.
func (r Remote[T]) Add(ctx context.Context, delta T) (new T, err error) {
	old, err := r.fetch(ctx, atomic.Sum, delta)
	if err != nil {
		return 0, err
	}
	return old + delta, nil
}

// CompareAndSwap sets the word to new if it is old, and reports whether it did.
func (r Remote[T]) CompareAndSwap(ctx context.Context, old, new T) (swapped bool, err error) {
	var was [8]byte
	o, n := toBytes(old), toBytes(new)
	err = r.do(ctx, wire.VerbCompare, atomic.Cswap, n[:r.size], o[:r.size], was[:r.size])
	return err == nil && fromBytes[T](was) == old, err
}

// Max sets the word to v if v is greater, and returns what it was.
func (r Remote[T]) Max(ctx context.Context, v T) (old T, err error) {
	return r.fetch(ctx, atomic.Max, v)
}

// Min sets the word to v if v is less, and returns what it was.
func (r Remote[T]) Min(ctx context.Context, v T) (old T, err error) {
	return r.fetch(ctx, atomic.Min, v)
}

// And combines the word with mask by bitwise and, and returns what it was.
// Floats have no bits to combine: ErrUnsupported.
func (r Remote[T]) And(ctx context.Context, mask T) (old T, err error) {
	return r.fetch(ctx, atomic.Band, mask)
}

// Or is as And, with bitwise or.
func (r Remote[T]) Or(ctx context.Context, mask T) (old T, err error) {
	return r.fetch(ctx, atomic.Bor, mask)
}

// Xor is as And, with bitwise exclusive or.
func (r Remote[T]) Xor(ctx context.Context, mask T) (old T, err error) {
	return r.fetch(ctx, atomic.Bxor, mask)
}

// fetch runs a fetch atomic and returns the value before.
func (r Remote[T]) fetch(ctx context.Context, op atomic.Op, v T) (old T, err error) {
	var was [8]byte
	b := toBytes(v)
	err = r.do(ctx, wire.VerbFetch, op, b[:r.size], nil, was[:r.size])
	return fromBytes[T](was), err
}

func (r Remote[T]) do(ctx context.Context, verb wire.Verb, op atomic.Op, operand, compare, result []byte) error {
	if r.bind == nil {
		return fmt.Errorf("xdpfab: zero Remote: %w", ErrClosed)
	}
	if !atomic.Valid(memory.FormOf(verb), op, r.dt) {
		return fmt.Errorf("xdpfab: %v on %v: %w", op, r.dt, ErrUnsupported)
	}
	for attempt := 0; ; attempt++ {
		at := r.bind.at.Load()
		err := r.bind.peer.do(ctx, call{
			verb: verb, op: uint8(op), datatype: uint8(r.dt), count: 1, key: at.Key, incarnation: at.Incarnation, offset: at.Base + r.offset,
			operand: operand, compare: compare, result: result,
		})
		if err == nil {
			return nil
		}
		if err, again := r.bind.after(ctx, err, at, attempt); !again {
			return err
		}
	}
}

// toBytes returns the value's bytes as they are on the wire.
func toBytes[T Number](v T) (b [8]byte) {
	binary.LittleEndian.PutUint64(b[:], bitsOf(v))
	return b
}

// fromBytes undoes toBytes.
func fromBytes[T Number](b [8]byte) T { return ofBits[T](binary.LittleEndian.Uint64(b[:])) }
