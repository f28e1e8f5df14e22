// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// RemoteVector is a region in a peer's memory as a sequence of words. Its methods
// take many words at once, in any order, also the same one several times: the
// fastest way to reach them, since they travel together, up to 182 in a frame of
// 1500 bytes if they lie in the first 4 GiB of a region that is addressed from 0.
// Each word is treated atomically and exactly once; all of them are not one
// transaction. When a method fails, some words may have been treated, and the error
// says ErrNotExecuted only if none was. A RemoteVector may be used by many goroutines.
type RemoteVector[T Number] struct {
	bind *binding
	n    uint64 // words
	dt   atomic.Datatype
}

// Vector returns the words of type T in a peer's region, which is found by name. It is
// bound to the registration that is found, as Word says.
func Vector[T Number](ctx context.Context, p *Peer, region string, options ...HandleOption) (RemoteVector[T], error) {
	r, err := p.Lookup(ctx, region)
	if err != nil {
		return RemoteVector[T]{}, err
	}
	return VectorAt[T](p, r, options...), nil
}

// Rebind is as [Remote.Rebind].
func (v RemoteVector[T]) Rebind(ctx context.Context) error {
	if v.bind == nil {
		return fmt.Errorf("xdpfab: zero RemoteVector: %w", ErrClosed)
	}
	return v.bind.rebind(ctx)
}

// VectorAt returns the words of type T in a peer's region, whose Size says how many
// there are. Nothing is sent. It is bound to a registration as WordAt says.
func VectorAt[T Number](p *Peer, r RemoteRegion, options ...HandleOption) RemoteVector[T] {
	dt := datatypeOf[T]()
	return RemoteVector[T]{bind: bind(p, r, r.Size, options), n: r.Size / uint64(dt.Size()), dt: dt}
}

// Len returns the number of words.
func (v RemoteVector[T]) Len() uint64 { return v.n }

// Load stores the values of the words at the given indexes in values.
func (v RemoteVector[T]) Load(ctx context.Context, at []uint64, values []T) error {
	return v.do(ctx, wire.VerbFetch, atomic.Read, at, nil, values)
}

// Store sets the words at the given indexes to values.
func (v RemoteVector[T]) Store(ctx context.Context, at []uint64, values []T) error {
	return v.do(ctx, wire.VerbAtomic, atomic.Write, at, values, nil)
}

// Add adds deltas to the words at the given indexes, and stores their new values in
// sums, unless that is nil: without, less travels. Integers wrap around.
func (v RemoteVector[T]) Add(ctx context.Context, at []uint64, deltas, sums []T) error {
	if sums == nil {
		return v.do(ctx, wire.VerbAtomic, atomic.Sum, at, deltas, nil)
	}
	err := v.do(ctx, wire.VerbFetch, atomic.Sum, at, deltas, sums)
	if err == nil {
		for i, delta := range deltas {
			sums[i] += delta
		}
	}
	return err
}

// do runs one operation on the words at the given indexes.
func (v RemoteVector[T]) do(ctx context.Context, verb wire.Verb, op atomic.Op, at []uint64, operands, results []T) error {
	switch {
	case v.bind == nil:
		return fmt.Errorf("xdpfab: zero RemoteVector: %w", ErrClosed)
	case op != atomic.Read && len(operands) != len(at):
		return fmt.Errorf("xdpfab: %d values for %d words: want one each: %w", len(operands), len(at), ErrCount)
	case verb == wire.VerbFetch && len(results) != len(at):
		return fmt.Errorf("xdpfab: room for %d results of %d words: want one each: %w", len(results), len(at), ErrCount)
	case len(at) > math.MaxUint32:
		return fmt.Errorf("xdpfab: %d words: want at most %d, take them in parts: %w", len(at), math.MaxUint32, ErrTooMany)
	case len(at) == 0:
		return nil
	}
	size := v.dt.Size()
	c := call{verb: verb, op: uint8(op), datatype: uint8(v.dt), count: uint32(len(at))}
	for _, index := range at {
		if index >= v.n {
			return fmt.Errorf("xdpfab: word %d of %d: %w", index, v.n, ErrOutOfBounds)
		}
	}
	if op != atomic.Read {
		c.operand = make([]byte, 0, len(at)*size+8) // appendWord writes 8, and keeps size
	}
	for _, x := range operands {
		c.operand = appendWord(c.operand, x, size)
	}
	if verb == wire.VerbFetch {
		c.result = make([]byte, len(at)*size)
	}
	if err := v.scatter(ctx, c, at); err != nil {
		return err
	}
	for i := range results {
		var b [8]byte
		copy(b[:], c.result[i*size:(i+1)*size])
		results[i] = fromBytes[T](b)
	}
	return nil
}

// scatter runs the call on the words at the given indexes of the registration that the
// vector is bound to.
func (v RemoteVector[T]) scatter(ctx context.Context, c call, at []uint64) error {
	for attempt := 0; ; attempt++ {
		r := v.bind.at.Load()
		extents := make([]mr.Extent, len(at))
		for i, index := range at {
			extents[i] = mr.Extent{Offset: r.Base + index*uint64(v.dt.Size()), Key: r.Key, Count: 1}
		}
		c.incarnation = r.Incarnation
		err := v.bind.peer.scatter(ctx, c, extents)
		if err == nil {
			return nil
		}
		if err, again := v.bind.after(ctx, err, r, attempt); !again {
			return err
		}
	}
}

// appendWord appends the bytes of x as they are on the wire.
func appendWord[T Number](b []byte, x T, size int) []byte {
	return binary.LittleEndian.AppendUint64(b, bitsOf(x))[:len(b)+size]
}
