// SPDX-License-Identifier: Apache-2.0

// Package mr holds memory regions: the bytes that peers may touch, under which key, with which rights, for how long.
//
// In the journey of an operation it stands between the frame and the kernel of the operation: the target's poller
// turns a key into a Region (Reader.Lookup) and an offset into bytes (Region.Resolve), which checks rights, bounds and
// alignment in this order. Neither allocates, takes a lock or slows down as regions become many.
//
// A Memory is where bytes come from: anonymous memory, a memfd, a file, or memory of the Go heap. A Region is a
// registration of a Memory, or of a part of it, in a Table. One Memory may have many Regions, and they may overlap.
//
// # Lifetime
//
// Pollers bracket each burst of work with Reader.Enter and Reader.Exit. A Region found in between stays mapped until
// Exit, whatever happens meanwhile. Region.Close takes the key out of the table and then waits until every Reader has
// been outside at least once (quiescent-state-based reclamation); after that no operation can be in flight on it, and
// the Memory may go. Memory.Close refuses while Regions of it are left, so the order cannot be got wrong.
package mr
