// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/mr"
	"github.com/xdpfab/xdpfab/xdpfab/fi"
)

// Condition is the condition that Wait waits for. Equal, AtLeast and similar functions
// make one.
type Condition[T Element] struct {
	op    atomic.Op // that would change the word; none in a zero value
	value T
}

// conditions are the conditions in words.
var conditions = map[atomic.Op]string{atomic.Cswap: "", atomic.CswapNE: "other than ", atomic.CswapLE: "at least ",
	atomic.CswapGE: "at most ", atomic.CswapLT: "more than ", atomic.CswapGT: "less than "}

// String returns the condition in words, such as "at least 8".
func (c Condition[T]) String() string {
	if c.op == atomic.Min {
		return "nothing"
	}
	return fmt.Sprint(conditions[c.op], c.value)
}

// Equal is met by a word that equals v as a number: see [Remote.CompareAndExchange].
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
// a condition, and returns the value that met it. For example:
//
//	n, err := xdpfab.Wait(ctx, dom, service.Region, 3, xdpfab.AtLeast[uint64](8))
//
// The index counts words, from 0. Wait does not poll: the operations of peers wake it. A
// change by the program itself wakes it once the program has called [mr.Region.Changed].
// Wait can miss a value that is replaced at once.
//
// If the context ends first, Wait returns the value that it saw last, and an error that
// wraps the context's cause. Other errors wrap ErrClosed, if the region or the domain is
// closed; ErrForeign, if the region is nil or belongs to another domain; ErrOutOfBounds;
// ErrMisaligned; or ErrOpNotSupported, for a zero Condition. [fi.Domain.WaitWord]
// describes the cost of a wait.
func Wait[T Element](ctx context.Context, d *Domain, r *mr.Region, index int, until Condition[T]) (T, error) {
	if err := errno.NoContext(ctx); err != nil {
		return *new(T), err
	}
	var met [wide]byte
	if until.op == atomic.Min {
		return fromBytes[T](met), errno.Refuse(fi.ErrOpNotSupported,
			"xdpfab: wait without a condition: want one, such as Equal or AtLeast")
	}
	if err := d.there(); err != nil {
		return fromBytes[T](met), err
	}
	dt, began := DatatypeOf[T](), time.Now()
	v, size := toBytes(until.value), dt.Size()
	at := beginning(uint64(index), uint64(size))
	if r != nil {
		if words := r.Len() / size; index < 0 || index >= words {
			return fromBytes[T](met), fmt.Errorf(
				"xdpfab: wait for word %d of region %q, which has %d words of %d bytes: %w",
				index, r.Name(), words, size, beyond(uint64(words)))
		}
		at += r.Base()
	}
	err := d.WaitWord(ctx, r, &fi.Msg{Datatype: dt, Op: until.op, Offset: at, Compare: v[:size], Result: met[:size]})
	cause := context.Cause(ctx)
	switch late := cause != nil && errors.Is(err, cause); {
	case late && atomic.Applied(until.op, dt, met[:size], v[:size], v[:size]):
		err = fmt.Errorf("xdpfab: waited %v for word %d of region %q to be %v, and it is %v now, which nobody told: "+
			"call Changed of the region after changes of one's own: %w",
			time.Since(began).Round(time.Millisecond), index, r.Name(), until, fromBytes[T](met), cause)
	case late:
		err = fmt.Errorf("xdpfab: waited %v for word %d of region %q to be %v, and it was %v: have a peer change it, "+
			"or give the context more time: %w",
			time.Since(began).Round(time.Millisecond), index, r.Name(), until, fromBytes[T](met), cause)
	}
	return fromBytes[T](met), err
}
