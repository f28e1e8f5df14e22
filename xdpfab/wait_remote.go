// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// WaitCompareAndSwap waits at the peer until the word is old, and then sets it to new,
// once. Nobody polls: a swap of 0 for the caller's number takes a lock in one round trip,
// and handing the lock over takes one.
//
// Operations that wait for the same value by the same operation run in the order in which
// they arrived. Operations that do not wait, and the owner of the memory, do not queue
// behind them. The peer looks at the word after it has applied operations of peers to the
// region, and when its owner calls [github.com/xdpfab/xdpfab/mr.Region.Changed].
//
// When the context ends, the wait at the peer ends, too, which takes a round trip. The
// error then wraps the context's cause, and ErrNotExecuted, since the word was not
// swapped; a swap that came just before is a success. If the peer falls silent while the
// operation waits, the outcome is unknown; if it restarts, the error is ErrPeerRestarted.
// The peer does not release what a crashed caller holds: package sync has a lock with a
// lease.
//
// A peer keeps at most 64 such operations of an endpoint at one of its own (a session),
// 512 of an address, and 4096 at one of its queues. It refuses further ones with ErrBusy,
// not executed. A daemon does so with more than 64 of a domain that is its guest, at all
// peers together. If the daemon ends while an operation waits, or another one takes over,
// the error wraps ErrHostLost: see ErrNotExecuted and ErrOutcomeUnknown.
// ErrOpNotSupported means that no operation can wait there: the memory is resident, or
// only its program has mapped it, or the peer or the daemon is of an older release.
func (r Remote[T]) WaitCompareAndSwap(ctx context.Context, old, new T) error {
	_, err := r.wait(ctx, "WaitCompareAndSwap", atomic.Cswap, old, new)
	return err
}

// WaitCompare is [Remote.WaitCompareAndSwap] for any operation with a condition, and
// returns the previous value. The operations are atomic.Cswap to atomic.CswapGT and, on
// integers, atomic.SumAtMost and atomic.DiffAtLeast. A difference that has to be at least
// 0 is a semaphore; a swap of n for n is a barrier. Elements have at most 8 bytes.
//
// To wait and leave the word as it is, take 0 off: DiffAtLeast with a comparand of 8 and
// a v of 0 waits until the word is 8 or more. SumAtMost likewise waits until it is 8 or
// less, and Cswap of 8 for 8 until it is 8.
func (r Remote[T]) WaitCompare(ctx context.Context, op atomic.Op, comparand, v T) (old T, err error) {
	return r.wait(ctx, "WaitCompare", op, comparand, v)
}

// wait runs an operation that waits, for a method.
func (r Remote[T]) wait(ctx context.Context, method string, op atomic.Op, comparand, v T) (old T, err error) {
	if err := r.checkWait(method, op); err != nil {
		return old, err
	}
	var was [wide]byte
	c, b, began := toBytes(comparand), toBytes(v), time.Now()
	err = r.do(ctx, method, wire.VerbWait, op, b[:r.size], c[:r.size], was[:r.size])
	switch oe, is := errors.AsType[*OpError](err); {
	case is && errors.Is(err, ErrOpNotSupported):
		oe.Cause = errno.Refuse(ErrOpNotSupported, "no operation can wait there: the memory is resident, or only its "+
			"program has mapped it, or the peer is of an older release: poll with CompareAndSwap")
	case is && ctx.Err() != nil && errors.Is(err, ErrNotExecuted) && errors.Is(err, context.Cause(ctx)):
		oe.Cause = fmt.Errorf("waited %v for the word to %s: have a program change it, or give the context more time: "+
			"%w", time.Since(began).Round(time.Millisecond), sought(op, comparand, v), oe.Cause)
	}
	return previous(fromBytes[T](was), err)
}

// sought says what an operation waits for.
func sought[T Element](op atomic.Op, comparand, v T) string {
	alone := v == *new(T)
	switch {
	case op == atomic.SumAtMost && alone:
		op = atomic.CswapGE
	case op == atomic.DiffAtLeast && alone:
		op = atomic.CswapLE
	case op == atomic.SumAtMost:
		return fmt.Sprintf("be at most %v with %v added", comparand, v)
	case op == atomic.DiffAtLeast:
		return fmt.Sprintf("be at least %v with %v taken off", comparand, v)
	}
	return "be " + Condition[T]{op, comparand}.String()
}

// checkWait refuses what no peer lets wait.
func (r Remote[T]) checkWait(method string, op atomic.Op) error {
	if r.bind != nil && !waiting.Waits(op, r.dt) {
		return errno.Unsent(errno.Refuse(ErrOpNotSupported, "xdpfab: %s by %v on %s: want a comparison, from %v to "+
			"%v, or on integers %v or %v, and elements of at most %d bytes", r.of(method), op, inGo(r.dt), atomic.Cswap,
			atomic.CswapGT, atomic.SumAtMost, atomic.DiffAtLeast, waiting.MaxWord))
	}
	if err := r.check(method, wire.VerbWait, op); err != nil {
		return err
	}
	if g := r.bind.at.Load().peer.to.Node.Dev.GuestRing(); g != nil && !g.Waits() {
		return errno.Unsent(errno.Refuse(ErrOpNotSupported, "xdpfab: an operation that waits at the peer: the daemon "+
			"of this program is of a release without them; want a later one, a domain with an interface of its own, "+
			"or poll with CompareAndSwap"))
	}
	return nil
}
