// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// lock is a word that programs compare and swap. Its upper half is the number of the
// latest holder. Its lower half names the registration of the memory (32 bits), and what
// the holder last wrote (32 bits, 0 if the lock is free). A holder writes again and
// again; who finds the word unchanged for a lease takes the lock from it. So the lock of
// a dead program becomes free. If the memory is new, an unknown program may hold the
// lock, so the first one waits for a lease, too: no restart of the node makes two
// holders.
type lock struct {
	peer  *xdpfab.Peer
	lease time.Duration
	word  xdpfab.Remote[xdpfab.U128]
	mark  uint64 // the lower half of a free lock
}

func newLock(ctx context.Context, peer *xdpfab.Peer, lease time.Duration) (*lock, error) {
	l := &lock{peer: peer, lease: lease}
	return l, l.bind(ctx)
}

// bind finds the memory, at first and after a restart of its node.
func (l *lock) bind(ctx context.Context) error {
	region, err := l.peer.Lookup(ctx, "locks")
	for errors.Is(err, xdpfab.ErrPeerRestarted) { // it was asked when it died
		region, err = l.peer.Lookup(ctx, "locks")
	}
	l.word, l.mark = xdpfab.WordAt[xdpfab.U128](l.peer, region, 0), uint64(region.Incarnation)<<32
	return err
}

// next is another lower half of a lock that is held.
func (l *lock) next() uint64 { return l.mark | uint64(1+rand.Uint32N(1<<31)) }

// acquire waits until it holds the lock.
func (l *lock) acquire(ctx context.Context) (*holder, error) {
	var seen xdpfab.U128
	for since := time.Now(); ; {
		now, err := l.word.Load(ctx)
		if err == nil && now != seen {
			seen, since = now, time.Now()
		}
		// A tenth more, as clocks do not run alike.
		if err == nil && (now.Lo == l.mark || time.Since(since) > l.lease+l.lease/10) {
			if h := l.try(ctx, now); h != nil {
				return h, nil
			}
		}
		if errors.Is(err, xdpfab.ErrPeerRestarted) {
			err = l.bind(ctx)
			seen, since = xdpfab.U128{}, time.Now()
		}
		if err != nil && (ctx.Err() != nil || !errors.Is(err, xdpfab.ErrOutcomeUnknown)) {
			return nil, err
		}
		time.Sleep(l.lease / 20)
	}
}

// try takes a lock that is free. If the outcome is unknown it may have it, and does not
// use it: then the lock is free again after a lease.
func (l *lock) try(ctx context.Context, was xdpfab.U128) *holder {
	began := time.Now()
	// The number grows, in new memory as well: between two that hold the lock there a
	// lease has passed, and clocks differ by less.
	own := xdpfab.U128{Hi: max(was.Hi+1, uint64(began.UnixNano())), Lo: l.next()}
	if swapped, _ := l.word.CompareAndSwap(ctx, was, own); !swapped {
		return nil
	}
	h := &holder{lock: *l, number: own.Hi, own: own, until: began.Add(l.lease), released: make(chan struct{})}
	h.Context, h.lose = context.WithCancelCause(ctx)
	go h.renew()
	return h
}
