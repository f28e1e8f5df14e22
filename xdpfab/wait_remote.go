// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// WaitCompareAndSwap waits, at the peer, until the word is old, and then sets it to new,
// once. Nobody polls: a swap of 0 to the caller's number is a lock in one round trip, and
// handing it over takes one.
//
// Those that wait for the same value of the word by the same operation come first who
// came first; an operation that does not wait, and the owner, pass by them. The peer
// looks at the word when it has applied operations of peers to the region, and when its
// owner calls [github.com/xdpfab/xdpfab/mr.Region.Changed].
//
// The end of the context ends the wait at the peer, which takes a round trip: then the
// error wraps the context's cause, and says whether the word was swapped: ErrNotExecuted
// if it was not; a swap that came just before is a success. If the peer falls silent, or
// ends, while the operation waits, the outcome is unknown. A holder that crashes keeps
// what it has: see package sync for a lock with a lease.
//
// A peer holds 64 such operations of an endpoint, and 512 of a node: further ones are
// refused with ErrBusy, and not executed. ErrOpNotSupported means that nobody can wait
// there: the memory is another program's or resident, or the peer is of an older release,
// or this domain is a guest of a daemon.
func (r Remote[T]) WaitCompareAndSwap(ctx context.Context, old, new T) error {
	_, err := r.WaitCompare(ctx, atomic.Cswap, old, new)
	return err
}

// WaitCompare is [Remote.WaitCompareAndSwap] for any operation with a condition, and
// returns the previous value: atomic.Cswap to atomic.CswapGT, or, on integers,
// atomic.SumAtMost and atomic.DiffAtLeast. A difference that is to be at least 0 is a
// semaphore; a swap of n to n, a barrier. Elements have up to 8 bytes.
func (r Remote[T]) WaitCompare(ctx context.Context, op atomic.Op, comparand, v T) (old T, err error) {
	if err := r.checkWait(op); err != nil {
		return old, err
	}
	var was [wide]byte
	c, b := toBytes(comparand), toBytes(v)
	err = r.do(ctx, wire.VerbWait, op, b[:r.size], c[:r.size], was[:r.size])
	return previous(fromBytes[T](was), err)
}

// checkWait refuses what no peer lets wait.
func (r Remote[T]) checkWait(op atomic.Op) error {
	if err := r.check(wire.VerbWait, op); err != nil {
		return err
	}
	if !waiting.Waits(op, r.dt) {
		return errno.Refuse(ErrOpNotSupported, "xdpfab: wait by %v on %v: want a comparison, from %v to %v, or on "+
			"integers %v or %v, and elements of at most %d bytes", op, r.dt, atomic.Cswap, atomic.CswapGT,
			atomic.SumAtMost, atomic.DiffAtLeast, waiting.MaxWord)
	}
	if r.bind.at.Load().peer.to.Node.Dev.GuestRing() != nil {
		return errno.Refuse(ErrOpNotSupported, "xdpfab: an operation that waits at the peer, by a guest of a "+
			"daemon: want a domain with an interface of its own, or poll with CompareAndSwap")
	}
	return nil
}
