// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// places describes which words of a vector a call is about: those at the indexes in at,
// or, if that is nil, n words from the one at index from on.
type places struct {
	at   []uint64
	from uint64
	n    int
}

// has compares the places with the number of words that there are.
func (v RemoteVector[T]) has(method string, p places) error {
	const room = "xdpfab: %s, which has %d words of %d bytes: %w"
	if p.n > math.MaxUint32 {
		return errno.Refuse(ErrTooMany, "xdpfab: %d words of %s: want at most %d, take them in parts", p.n,
			v.bind.region(), math.MaxUint32)
	}
	for _, index := range p.at {
		if index >= v.n {
			return fmt.Errorf(room, v.of(method, places{from: index, n: 1}), v.n, v.dt.Size(), beyond(v.n))
		}
	}
	if n := uint64(p.n); p.at == nil && (n > v.n || p.from > v.n-n) {
		return fmt.Errorf(room, v.of(method, p), v.n, v.dt.Size(), beyond(v.n))
	}
	return nil
}

// of names a call of a method, for errors: Load of words 3 and 7 of region "counters".
func (v RemoteVector[T]) of(method string, p places) string {
	const most = 4 // indexes that are named
	which := fmt.Sprintf("%d words", p.n)
	switch {
	case p.at == nil && p.n > 1:
		which = fmt.Sprintf("words %d to %d", p.from, p.from+uint64(p.n)-1)
	case p.at == nil:
		which = fmt.Sprintf("word %d", p.from)
	case p.n == 1:
		which = fmt.Sprintf("word %d", p.at[0])
	case p.n <= most:
		which = "words " + errno.List(indexes(p.at), most)
	}
	return fmt.Sprintf("%s of %s of %s", method, which, v.bind.region())
}

// indexes returns numbers as texts.
func indexes(at []uint64) []string {
	list := make([]string, len(at))
	for i, index := range at {
		list[i] = strconv.FormatUint(index, 10)
	}
	return list
}

// buffers are the values of a call, one a word in each that the operation uses.
type buffers[T Element] struct{ operands, compares, results []T }

// fits compares the buffers with the number of words of a call.
func (v RemoteVector[T]) fits(method string, verb wire.Verb, op atomic.Op, p places, b *buffers[T]) error {
	if op == atomic.Read {
		b.operands = nil
	} else if n := len(b.operands); n != p.n {
		return v.odd(method, p, "values", n)
	}
	if n := len(b.compares); verb == wire.VerbCompare && n != p.n {
		return v.odd(method, p, "comparands", n)
	}
	if n := len(b.results); verb != wire.VerbAtomic && n != p.n {
		return v.odd(method, p, "results", n)
	}
	return nil
}

// odd is the error of a slice that has not one value for each word.
func (v RemoteVector[T]) odd(method string, p places, what string, n int) error {
	return errno.Refuse(ErrLength, "xdpfab: %s: the slice of %s has length %d: want %d, one for each word",
		v.of(method, p), what, n, p.n)
}

// do runs one operation on some of the words.
func (v RemoteVector[T]) do(ctx context.Context, method string, verb wire.Verb, op atomic.Op, p places,
	b buffers[T]) error {
	if err := v.fault(method, verb, op, p, &b); err != nil || p.n == 0 {
		return errno.Unsent(err)
	}
	return v.send(ctx, method, p, calls.Call{Verb: verb, Op: uint8(op), Datatype: uint8(v.dt), Count: uint32(p.n),
		At: p.at, Operand: bytesOf(b.operands), Compare: bytesOf(b.compares), Result: bytesOf(b.results)})
}

// fault returns why an operation cannot be posted.
func (v RemoteVector[T]) fault(method string, verb wire.Verb, op atomic.Op, p places, b *buffers[T]) error {
	switch {
	case v.bind == nil:
		return errZeroVector()
	case !atomic.Valid(memory.FormOf(verb), op, v.dt):
		return undefined(v.of(method, p), memory.FormOf(verb), op, v.dt)
	}
	if err := v.fits(method, verb, op, p, b); err != nil {
		return err
	}
	if err := v.bind.at.Load().peer.there(); err != nil {
		return err
	}
	return v.has(method, p)
}

func errZeroVector() error {
	return errno.Refuse(ErrClosed, "xdpfab: the RemoteVector is a zero value: make it with Vector or VectorAt")
}

// send runs the call in the registration that the vector is bound to.
func (v RemoteVector[T]) send(ctx context.Context, method string, p places, c calls.Call) error {
	for attempt := 0; ; attempt++ {
		r := v.bind.at.Load()
		c.Key, c.Offset, c.Incarnation = r.Key, r.Base+p.from*uint64(v.dt.Size()), r.Incarnation
		err := r.peer.to.Do(ctx, c)
		if err == nil {
			return nil
		}
		if err, again := v.bind.after(ctx, err, r, attempt, v.of(method, p), memory.Needs(c.Verb, c.Op)); !again {
			return err
		}
	}
}
