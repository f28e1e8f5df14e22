// SPDX-License-Identifier: Apache-2.0

// Package sync has the parts that programs on several nodes build from remote atomics, in
// the memory of a home: a daemon, or any program that serves a region. Nothing runs at
// the home but the atomics, so a part needs no server of its own.
//
//	peer, err := dom.Dial(ctx, "10.0.0.2")
//	lock, err := sync.NewMutex(ctx, sync.Place{Home: peer, Region: "locks"}, time.Second)
//	held, err := lock.Lock(ctx)
//	err = work(held.Context(), held.Token())
//	err = held.Unlock()
//
// Each part says at its type how its words lie in memory, and the invariant that holds in
// all circumstances: loss, unknown outcomes, the death of any program at any point, and a
// restart of the home, with its memory or with new one. Unknown outcomes are resolved
// inside, where that is possible; what remains is told by an error.
//
// The memory of a part begins with a mark, which the first program writes into memory
// that is all zero. Memory with another mark, or with data, is refused with [ErrLayout].
//
// A part may be used by any number of goroutines, but for two: a [Barrier] is one party,
// and a [Board] counts the posts of one goroutine. docs/sync.md in the project says which
// part is for what, and when a consensus store is the better choice.
package sync
