// SPDX-License-Identifier: Apache-2.0

// Package sync provides locks, queues, counters and similar primitives for programs on
// several nodes. Each primitive keeps its state in a region of one node, its
// home, and changes it by remote atomics. So the home needs no program of yours: the
// region of a daemon is enough.
//
//	peer, err := dom.Dial(ctx, "10.0.0.2")
//	lock, err := sync.NewMutex(ctx, sync.Place{Home: peer, Region: "locks"}, time.Second)
//	held, err := lock.Lock(ctx)
//	err = work(held.Context(), held.Token())
//	err = held.Unlock()
//
// The documentation of each type shows the layout of its words, and an invariant. The
// invariant holds whatever happens: packets are lost, an outcome stays unknown, a program
// dies at any point, or the home restarts, with its memory or with new memory. A
// primitive resolves unknown outcomes itself if it can; otherwise the call returns an
// error. The text of an error names the call and its place:
//
//	xdpfab: Queue.Take at offset 64 of region "jobs" on 10.0.0.2: the queue was empty: have a program put a value,
//	or give the context more time: context deadline exceeded
//
// The memory of a primitive begins with a mark. The first program writes the mark if the
// memory is all zero. A constructor refuses memory with another mark, or with data: see
// [ErrLayout].
//
// Any number of goroutines may use a primitive, with two exceptions: a [Barrier] belongs
// to one party, and a [Board] to one goroutine. docs/sync.md in the project compares the
// primitives, and says when a consensus store is the better choice.
package sync
