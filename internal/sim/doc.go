// SPDX-License-Identifier: Apache-2.0

// Package sim runs real engines on a simulated network, in virtual time, from
// one seed. No part of an operation's journey is a stand-in but the port, the
// wire and the clock: the engines, sessions, codec, regions and kernels are the
// ones that run behind a NIC. The same seed gives the same run, bit for bit.
//
//	plan.go      what one run consists of, drawn from the seed
//	scheduler.go virtual time: one queue of events
//	network.go   the star of links, what it loses and delays
//	port.go      the engine's port on that network
//	node.go      an engine with its memory: stepped, stalled, crashed, restarted
//	workload.go  clients that post operations
//	faults.go    what is done to nodes and links, and when
//	wiretap.go   invariants of the frames on the wire
//	history.go   what was asked and what was answered
//	check.go     invariants of the memory after the run
//	linear.go    linearizability of every word
//	world.go     one run from its seed to its verdict
//	scale.go     how far it scales: figures and model, drawn by scale_plot.go
//
// # Invariants
//
// Every operation completes exactly once, within a bounded time after the faults
// have ended, with its results in place. Memory holds the sum of what succeeded
// and of a subset of what is unknown, and nothing of what was reported not
// executed. Operations of one peer take effect in the order posted; each word's
// history is linearizable. Afterwards no buffer and no session is left.
package sim
