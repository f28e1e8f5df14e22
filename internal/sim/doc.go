// SPDX-License-Identifier: Apache-2.0

// Package sim runs real engines on a simulated network, in virtual time, from
// one seed. Nothing in the life of an operation is a stand-in but the port, the
// wire and the clock: the engines, sessions, codec, regions and kernels are the
// ones that run behind a NIC. The same seed gives the same run, bit for bit.
//
//	plan.go      what one run consists of, drawn from the seed
//	story.go     the phases of a run of hours
//	dims.go      what a run may consist of beyond a storm, to be turned on and off
//	random.go    the one source of chance, and one that is unlucky
//	scheduler.go virtual time: one queue of events
//	network.go   the star of links, what it loses and delays
//	route.go     gateways that move, and NICs that choose queues
//	port.go      the engine's port on that network
//	node.go      engines with their memory: stepped, stalled, crashed, restarted
//	events.go    events at the targets of operations with data
//	seams.go     peers led another way, and callers that let go
//	workload.go  clients that post operations
//	op.go        what was asked and what was answered
//	letter.go    messages
//	combine.go   tagged atomics
//	mailbox.go   owners of endpoints that receive messages
//	receive.go   receives, and what comes into them
//	mailtap.go   messages on their way into a queue
//	delivery.go  invariants of the messages
//	value.go     elements of every datatype, as the model computes with them
//	guest.go     guests that execute operations on memory of their own
//	region.go    memory, registered, taken away and made again
//	faults.go    what a storm does to nodes and links, and when
//	chapters.go  what the phases of a story do
//	wiretap.go   invariants of the frames on the wire
//	lengths.go   silent and narrow paths where it is found out whether long frames pass, and what follows
//	usage.go     bounds of what engines hold on to, and what they have counted
//	check.go     invariants of the memory after the run
//	linear.go    linearizability of every word, in the order of each pair
//	trouble.go   what excuses a failure, and how many frames a node may send
//	trace.go     a run's fingerprint, and its readable text
//	counts.go    how often each thing happened
//	world.go     one run from its seed to its verdict
//
// Each client is an origin of its own. Order is promised for a pair, which also has one
// session at a time: a client in one life of its node, and an endpoint of a node. Some
// clients need no order, and get it only from nodes that always keep it. A pair may have
// several names, that is peers of the engine. A name that has not been answered by the
// same life as the first is not used: there is no order between the two.
//
// # Storms and stories
//
// Half the runs are storms: up to two seconds of many operations while links lose,
// duplicate, delay, corrupt and replay packets, and nodes stall, crash and lose their
// clocks. The other half are stories.
//
// A story is hours of few operations, in phases: busy, idle, links cut, a node
// frozen or dead, a gateway moved, queues chosen anew, endpoints closed, a region
// made again. Idle time costs nothing: a node whose engines have nothing to do is
// stepped at the next of their deadlines ([engine.Engine.NextDue]). Old frames
// arrive again after milliseconds or hours, above all those that had been given
// up.
//
// A set of [Dims] says what stories consist of. A run has all of them, unless a few are
// chosen:
//
//	go test ./internal/sim -run 'TestSim$' -args -seeds=1000 -with=hours,outage
//	go test ./internal/sim -run 'TestSim$' -args -with=hours,outage -seed=35 -show
//
// The second replays one seed and prints everything that happens.
//
// # Invariants
//
// Every operation completes exactly once, within a bounded time, with its results in
// place, and nothing touches the caller's memory afterwards. Memory holds the sum of
// the operations that succeeded and of a subset of those of unknown outcome, and
// nothing of those reported as not executed. Each word's history is linearizable, ends
// with the value of the word, and keeps the order in which each pair of endpoints
// posted, if its client needs order: an operation of unknown outcome ran in its place or
// not at all. No name of a pair is told of more restarts than there were. In a story, an
// operation succeeds unless there was trouble between its nodes shortly before or
// meanwhile, and an outcome stays unknown for good only as far as docs/guarantees.md
// allows; a node sends no more frames than its work and a few a second; and when all
// trouble is over, every node can reach every other. Afterwards no buffer and no session
// is left. All the while the counts of engines and executors agree with a recount.
//
// An operation with data that succeeds has one event at its target, when memory shows
// what it did, and in the order of its pair, if its client needs order. One that was not
// executed has none.
//
// A message that succeeds comes once, whole, to a receive that it matches, and behind
// what its pair had posted before it; one that was not executed never comes, and one of
// unknown outcome at most once. Messages that match the same receives come in posting
// order, each to the oldest receive that it matches. Every receive completes once, is
// cancelled, or is still posted. A message that stops in its middle is dropped within the
// give-up time of its target. A target says that a message waits only while one does,
// and tries it again when a receive is posted; and when all receives are posted,
// everything comes.
package sim
