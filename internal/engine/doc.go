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
//	settle    what executed learns that the burst is over
//
// A goroutine that keeps others from stepping may post without a ring, by [Engine.Begin] and
// [Engine.Submit]; either way an operation is taken by the same code.
//
// [Engine.Spin] and [Engine.Poll] are Step with fewer looks at the clock, for a caller that
// calls in a tight loop, and for one that may or may not.
//
// Everything belongs to the thread that steps, except [Ring.Claim], [Submission.Publish],
// [Submission.Abandon], [Engine.NewOrigin], [Origin.NewPeer], [Peer.SetLink], [Peer.Life],
// [Engine.Call], [Engine.Notify], [Engine.Wake], [Engine.Counters] and the inbox.
// Nothing on the data path allocates once the pools are warm, and nothing takes a lock.
package engine
