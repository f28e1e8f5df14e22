// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Condition is what Wait waits for. Equal and the like make one.
type Condition[T Element] struct {
	op    atomic.Op // that would change the word; none in a zero value
	value T
}

// Equal is met by a word that equals v, as numbers do: see [Remote.CompareAndExchange].
func Equal[T Element](v T) Condition[T] { return Condition[T]{atomic.Cswap, v} }

// NotEqual is met by a word other than v.
func NotEqual[T Element](v T) Condition[T] { return Condition[T]{atomic.CswapNE, v} }

// AtLeast is met by a word of v or more.
func AtLeast[T Ordered](v T) Condition[T] { return Condition[T]{atomic.CswapLE, v} }

// AtMost is met by a word of v or less.
func AtMost[T Ordered](v T) Condition[T] { return Condition[T]{atomic.CswapGE, v} }

// Greater is met by a word of more than v.
func Greater[T Ordered](v T) Condition[T] { return Condition[T]{atomic.CswapLT, v} }

// Less is met by a word of less than v.
func Less[T Ordered](v T) Condition[T] { return Condition[T]{atomic.CswapGT, v} }

// Wait returns when the word of type T at the given index of a region of the domain meets
// a condition, with the value that met it: Wait(ctx, dom, service.Region, 3,
// AtLeast[uint64](8)), say. It asks for nothing meanwhile: the operations of peers wake
// it. [fi.Domain.WaitWord] says what ends the wait besides; the program's own changes do
// once it has called [mr.Region.Changed].
func Wait[T Element](ctx context.Context, d *Domain, r *mr.Region, index int, until Condition[T]) (T, error) {
	var met [wide]byte
	if until.op == atomic.Min {
		return fromBytes[T](met), errno.Refuse(fi.ErrOpNotSupported,
			"xdpfab: wait without a condition: want one, such as Equal or AtLeast")
	}
	dt := DatatypeOf[T]()
	v, size := toBytes(until.value), dt.Size()
	at := beginning(uint64(index), uint64(size))
	if r != nil {
		if words := r.Len() / size; index < 0 || index >= words {
			return fromBytes[T](met), fmt.Errorf(
				"xdpfab: wait for word %d of region %q, which has %d words of %d bytes: %w",
				index, r.Name(), words, size, ErrOutOfBounds)
		}
		at += r.Base()
	}
	err := d.WaitWord(ctx, r, &fi.Msg{Datatype: dt, Op: until.op, Offset: at, Compare: v[:size], Result: met[:size]})
	return fromBytes[T](met), err
}
