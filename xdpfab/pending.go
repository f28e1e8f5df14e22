// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"fmt"
	"sync"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Pending is an operation that one of the Start methods of Remote has begun. Several can
// be under way at the same time; they run in the order in which they were begun. The
// operation runs even if nobody calls Wait. Any number of goroutines may wait.
type Pending[T Element] struct {
	r        Remote[T]
	at       *place
	method   string
	verb     wire.Verb
	op       atomic.Op
	adds     bool // StartAdd
	operand  [wide]byte
	compared [wide]byte
	was      [wide]byte

	turn  turn          // of the goroutine that waits; guards what follows
	w     *calls.Waiter // nil when the operation has ended
	value T
	err   error
}

// StartAdd is Add without waiting: Wait returns the new value.
func (r Remote[T]) StartAdd(ctx context.Context, delta T) *Pending[T] {
	p := &Pending[T]{r: r, method: "StartAdd", verb: wire.VerbFetch, op: atomic.Sum, operand: toBytes(delta),
		adds: true}
	return p.start(ctx)
}

// StartFetch is Fetch without waiting. Only if the queue is full does StartFetch wait,
// until there is room or the context ends. Wait returns the error of an operation that
// could not be begun.
func (r Remote[T]) StartFetch(ctx context.Context, op atomic.Op, v T) *Pending[T] {
	p := &Pending[T]{r: r, method: "StartFetch", verb: wire.VerbFetch, op: op, operand: toBytes(v)}
	return p.start(ctx)
}

// StartApply is Apply without waiting. Wait returns a zero value.
func (r Remote[T]) StartApply(ctx context.Context, op atomic.Op, v T) *Pending[T] {
	p := &Pending[T]{r: r, method: "StartApply", verb: wire.VerbAtomic, op: op, operand: toBytes(v)}
	return p.start(ctx)
}

// StartCompare is Compare without waiting.
func (r Remote[T]) StartCompare(ctx context.Context, op atomic.Op, comparand, v T) *Pending[T] {
	p := &Pending[T]{r: r, method: "StartCompare", verb: wire.VerbCompare, op: op, operand: toBytes(v),
		compared: toBytes(comparand)}
	return p.start(ctx)
}

func (p *Pending[T]) start(ctx context.Context) *Pending[T] {
	if p.err = p.r.check(p.method, p.verb, p.op); p.err != nil {
		return p
	}
	p.at = p.r.bind.at.Load()
	if p.w, p.err = p.at.peer.to.Start(ctx, p.call()); p.err != nil {
		p.err = explain(p.err, p.at.RemoteRegion, p.r.of(p.method), memory.Needs(p.verb, uint8(p.op)))
	}
	return p
}

// call returns the operation. Its buffers are those of p, so that nothing is allocated.
func (p *Pending[T]) call() calls.Call {
	c := calls.Call{Verb: p.verb, Op: uint8(p.op), Datatype: uint8(p.r.dt), Count: 1, Key: p.at.Key,
		Incarnation: p.at.Incarnation, Offset: p.at.Base + p.r.offset}
	if p.op != atomic.Read {
		c.Operand = p.operand[:p.r.size]
	}
	if p.verb == wire.VerbCompare {
		c.Compare = p.compared[:p.r.size]
	}
	if p.verb != wire.VerbAtomic {
		c.Result = p.was[:p.r.size]
	}
	return c
}

// Wait waits until the operation has ended, and returns the result: that of Add for
// StartAdd, that of Fetch for StartFetch, and so on. If the context ends first, the error
// says whether the outcome is unknown or the operation was not executed. Later calls of
// Wait return the same; Settle can still find out an unknown outcome. If another
// goroutine waits already, a caller whose context ends changes nothing, and may wait
// again. With manual progress, Wait makes progress.
func (p *Pending[T]) Wait(ctx context.Context) (T, error) {
	if p == nil {
		return *new(T), noneOf("Pending", "a Start method")
	}
	if err := errno.NoContext(ctx); err != nil { // the operation continues
		return *new(T), err
	}
	if !p.turn.take(ctx) {
		return *new(T), fmt.Errorf("xdpfab: the operation continues, and another goroutine waits for it: %w",
			context.Cause(ctx))
	}
	defer p.turn.release()
	if p.r.bind == nil && p.err == nil {
		return p.value, noneOf("Pending", "a Start method")
	}
	if p.w == nil {
		return p.value, p.err
	}
	c := p.call()
	p.err = p.at.peer.to.Await(ctx, c, p.w)
	p.w = nil
	if p.err != nil {
		var again bool
		need := memory.Needs(p.verb, uint8(p.op))
		if p.err, again = p.r.bind.after(ctx, p.err, p.at, 0, p.r.of(p.method), need); again {
			p.err = p.r.do(ctx, p.method, p.verb, p.op, c.Operand, c.Compare, c.Result)
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
	if p.adds {
		return sum(p.r.dt, old, fromBytes[T](p.operand))
	}
	return old
}

// turn is of one goroutine at a time. It costs those nothing that need not wait for it.
type turn struct {
	mu    sync.Mutex
	taken bool
	next  chan struct{} // closed by release; nil if nobody waits
}

// take takes the turn: at once if it is free, even if the context has ended. It returns
// false if the context ended first.
func (t *turn) take(ctx context.Context) bool {
	for {
		t.mu.Lock()
		if !t.taken {
			t.taken = true
			t.mu.Unlock()
			return true
		}
		if t.next == nil {
			t.next = make(chan struct{})
		}
		next := t.next
		t.mu.Unlock()
		select {
		case <-next:
		case <-ctx.Done():
			return false
		}
	}
}

func (t *turn) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.taken = false; t.next != nil {
		close(t.next)
		t.next = nil
	}
}

// check refuses what cannot be posted.
func (r Remote[T]) check(method string, verb wire.Verb, op atomic.Op) error {
	return errno.Unsent(r.fault(method, verb, op))
}

// undefined is the error of an operation that is not defined on a datatype in the form of
// a method.
func undefined(method string, form atomic.Func, op atomic.Op, dt atomic.Datatype) error {
	why := fmt.Sprintf("is not defined on %s: atomic.Valid tells which operations are", inGo(dt))
	switch {
	case atomic.Valid(atomic.Compare, op, dt):
		why = "takes a comparand: want Compare"
	case form == atomic.Compare && atomic.Valid(atomic.Fetch, op, dt):
		why = "takes no comparand: want Fetch"
	case atomic.Valid(atomic.Fetch, op, dt):
		why = "returns the word: want Fetch"
	}
	return errno.Refuse(ErrOpNotSupported, "xdpfab: %s: operation %v %s", method, op, why)
}

// fault returns why the operation cannot be posted.
func (r Remote[T]) fault(method string, verb wire.Verb, op atomic.Op) error {
	if r.bind == nil {
		return errno.Refuse(ErrClosed, "xdpfab: the Remote is a zero value: make it with Word or WordAt")
	}
	at := r.bind.at.Load()
	if err := at.peer.there(); err != nil {
		return err
	}
	if size := uint64(r.size); at.Size != 0 && r.offset+size > at.Size {
		return fmt.Errorf("xdpfab: %s, which has %d words of %d bytes: %w", r.of(method), at.Size/size, size,
			beyond(at.Size/size))
	}
	if !atomic.Valid(memory.FormOf(verb), op, r.dt) {
		return undefined(r.of(method), memory.FormOf(verb), op, r.dt)
	}
	return nil
}
