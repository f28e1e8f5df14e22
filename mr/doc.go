// SPDX-License-Identifier: Apache-2.0

// Package mr holds memory regions: which bytes peers may touch, under which key, with
// which rights, and for how long.
//
// A Memory is the source of bytes: anonymous memory, a memfd, a file, or memory of the Go
// heap. A Region is a registration of a Memory, or of a part of it, in a Table. One
// Memory may have many Regions, and they may overlap.
//
// # For programs
//
// A program gets memory from [Alloc], [Memfd], [File] or [Adopt], and registers it by
// Domain.Register of package xdpfab; Domain.NewRegion does both. Of its [Region] it uses
// the words ([Region.Uint64] and the other three), [Region.Bytes], [Region.Changed],
// [Region.Tally], [Region.Remote], the getters and Close. [Extent] and [RemoteRegion]
// describe memory of peers.
//
// # For devices
//
// All else is for those who execute what peers ask for: [Table] and [Reader], [Resident]
// and [Shared], [Region.Resolve] and [Region.ResolveEach] with [Fault],
// [Region.AddTally], the ways to learn of operations ([Observer], [Watcher]), and the
// fields Address, Incarnation, Withdrawing and Withdrawn of [Options]. A region in a
// table that the program made itself has no peers.
//
// In the life of an operation this package stands between the frame and the kernel of the
// operation: the target's poller turns a key into a Region (Reader.Lookup) and an offset
// into bytes (Region.Resolve), which checks rights, bounds and alignment in this order.
// Neither allocates, takes a lock or slows down as regions become many.
//
// # Lifetime
//
// Pollers bracket each burst of work with Reader.Enter and Reader.Exit. A Region found in
// between stays mapped until Exit, whatever happens meanwhile. Region.Close takes the key
// out of the table and then waits until every Reader has been outside at least once
// (quiescent-state-based reclamation); after that no operation can be under way on it,
// and the Memory may be closed. Memory.Close refuses while there are Regions of it, so
// that the order cannot be wrong.
package mr
