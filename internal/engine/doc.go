// SPDX-License-Identifier: Apache-2.0

// Package engine is the poller: it moves operations from submission rings into
// frames, frames from a port through the sessions into memory, and results back
// into completions. One engine serves one queue of one interface and is driven
// by one thread at a time.
//
// [Engine.Step] is the whole of it, in the order in which data flows:
//
//	receive   port -> session -> execute ([Served]) or complete (initiator)
//	collect   submission rings -> frames under construction, or the queues of remote endpoints
//	mail      frames that another queue's engine received, calls, peers that moved
//	pack      the queues -> request frames of the sessions
//	timers    retransmission, acknowledgement, idleness
//	say       completions -> their readers
//	flush     sessions -> port, one kick
//	settle    the executors learn that the burst is over
//
// A goroutine that holds the turn may post without going through the ring, by
// [Engine.Begin] and [Engine.Submit]; either way the same code takes the operation.
//
// [Engine.Spin] and [Engine.Poll] are Step with fewer looks at the clock: Spin for a
// caller in a tight loop, Poll for a caller that may or may not be in one.
//
// Everything belongs to the thread that has the turn, except [Ring.Claim],
// [Submission.Publish], [Submission.Release], [Engine.NewOrigin], [Origin.NewPeer],
// [Peer.SetLink], [Peer.Life], [Engine.Call], [Engine.Notify], [Engine.Wake],
// [Engine.Counters] and the inbox. Nothing on the data path allocates once the pools are
// warm, and nothing takes a lock.
package engine
