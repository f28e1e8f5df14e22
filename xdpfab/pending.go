// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Pending is an operation on a word that one of the Start methods of Remote has begun.
// Several can be under way at once; they run in the order in which they were started. The
// operation runs whether Wait is called or not. Many goroutines may wait.
type Pending[T Element] struct {
	r     Remote[T]
	c     calls.Call
	delta *T // of StartAdd
	at    *place
	was   [wide]byte

	turn  chan struct{} // holds one token while a goroutine waits; guards what follows
	w     *calls.Waiter // nil when the operation has ended
	value T
	err   error
}

// StartAdd is Add without waiting: Wait returns the new value.
func (r Remote[T]) StartAdd(ctx context.Context, delta T) *Pending[T] {
	p := r.start(ctx, wire.VerbFetch, atomic.Sum, nil, delta)
	p.delta = &delta
	return p
}

// StartFetch is Fetch without waiting. The context bounds the wait for room in the queue;
// if there is an error, Wait returns it, and the operation has not been started.
func (r Remote[T]) StartFetch(ctx context.Context, op atomic.Op, v T) *Pending[T] {
	return r.start(ctx, wire.VerbFetch, op, nil, v)
}

// StartApply is Apply without waiting. Wait returns a zero value.
func (r Remote[T]) StartApply(ctx context.Context, op atomic.Op, v T) *Pending[T] {
	return r.start(ctx, wire.VerbAtomic, op, nil, v)
}

// StartCompare is Compare without waiting.
func (r Remote[T]) StartCompare(ctx context.Context, op atomic.Op, comparand, v T) *Pending[T] {
	return r.start(ctx, wire.VerbCompare, op, &comparand, v)
}

func (r Remote[T]) start(ctx context.Context, verb wire.Verb, op atomic.Op, comparand *T, v T) *Pending[T] {
	p := &Pending[T]{r: r, turn: make(chan struct{}, 1)}
	if p.err = r.check(verb, op); p.err != nil {
		return p
	}
	p.c = calls.Call{Verb: verb, Op: uint8(op), Datatype: uint8(r.dt), Count: 1}
	if op != atomic.Read {
		b := toBytes(v)
		p.c.Operand = b[:r.size]
	}
	if comparand != nil {
		b := toBytes(*comparand)
		p.c.Compare = b[:r.size]
	}
	if verb != wire.VerbAtomic {
		p.c.Result = p.was[:r.size]
	}
	p.at = r.bind.at.Load()
	p.c.Key, p.c.Incarnation, p.c.Offset = p.at.Key, p.at.Incarnation, p.at.Base+r.offset
	p.w, p.err = p.at.peer.to.Start(ctx, p.c, nil)
	return p
}

// Wait waits for the end of the operation, and returns what the method would have
// returned that waits by itself. With manual progress the call makes progress. When the
// context ends, the outcome is unknown, or the operation has not been executed, as the
// error says; that is final, but for Settle. A caller whose context ends while
// another waits changes nothing, and may wait again.
func (p *Pending[T]) Wait(ctx context.Context) (T, error) {
	select {
	case p.turn <- struct{}{}: // if it is free, also when the context has ended
	default:
		select {
		case p.turn <- struct{}{}:
		case <-ctx.Done():
			return *new(T), fmt.Errorf("xdpfab: the operation continues, and another goroutine waits for it: %w",
				context.Cause(ctx))
		}
	}
	defer func() { <-p.turn }()
	if p.w == nil {
		return p.value, p.err
	}
	p.err = p.at.peer.to.Await(ctx, p.c, p.w)
	p.w = nil
	if p.err != nil {
		var again bool
		if p.err, again = p.r.bind.after(ctx, p.err, p.at, 0); again {
			p.err = p.r.do(ctx, p.c.Verb, atomic.Op(p.c.Op), p.c.Operand, p.c.Compare, p.c.Result)
		}
	}
	if p.err != nil {
		p.err = later(p.err, p.result)
	} else {
		p.value = p.result(p.was[:])
	}
	return p.value, p.err
}

// result returns what Wait returns for the result of the operation.
func (p *Pending[T]) result(was []byte) T {
	old := elementOf[T](was)
	if p.delta != nil {
		return sum(p.r.dt, old, *p.delta)
	}
	return old
}

// check refuses what cannot be posted.
func (r Remote[T]) check(verb wire.Verb, op atomic.Op) error {
	if r.bind == nil {
		return errno.Refuse(ErrClosed, "xdpfab: the Remote is a zero value: make it with Word or WordAt")
	}
	if r.outside != nil {
		return r.outside
	}
	if !atomic.Valid(memory.FormOf(verb), op, r.dt) {
		return fmt.Errorf("xdpfab: %v %v on %v: %w", memory.FormOf(verb), op, r.dt, ErrOpNotSupported)
	}
	return nil
}
