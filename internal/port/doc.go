// SPDX-License-Identifier: Apache-2.0

// Package port is where frames leave and enter the process. It turns a network
// interface into queues, each a pair of packet bursts, in and out:
//
//	Open ── nic: can it be used? ── bpf: program loaded, attached ── xsk: UMEM, socket for each queue
//	  │                                                                  │
//	  ▼                                     XSKMAP: queue*64 + lane 0 ◀──┘
//	Interface ─ Link, Counters, Close
//	  ├─ watcher ─ Watch, Follow, Silent: what changes at run time
//	  └─ Queue ─ Receive, Release, Buffer, Send, Flush, Wait, Wake
//
// A [Queue] implements the engine's Port, and knows nothing of frames: it moves
// packets between the rings of one AF_XDP socket and one thread, in bursts,
// without allocating and with one system call for each burst sent. The XDP program
// (package bpf) decides which packets arrive here; all others go to the kernel as
// usual.
//
// With Options.Lend some queues are for other programs ([Interface.Lend]): such a program
// makes a Queue of the descriptors ([Adopt]). Meanwhile, and before, no frame is lost: as
// long as no program has such a queue, [Interface.Mind] hands on the frames there.
//
// The watcher is one goroutine that follows the kernel: the addresses that UDP is
// served at, the ways to peers, and whether packets can still arrive.
//
// [Memory] is an implementation of the engine's Port without a kernel, for
// tests and simulation.
package port
