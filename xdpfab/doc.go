// SPDX-License-Identifier: Apache-2.0

// Package xdpfab is remote atomics for Ethernet clusters. A program adds to,
// swaps, compares or reads values in memory that another node registered; the
// operation runs there, exactly once, in a few microseconds, on any NIC that
// Linux has a driver for. The semantics are libfabric's, fi_atomic(3) and
// fi_domain(3); in place of RDMA queues there are AF_XDP sockets.
//
// # Two levels
//
// The shortest way is a typed handle on a remote word, in the shape of
// sync/atomic:
//
//	dom, err := xdpfab.Open(ctx, "eth0", xdpfab.DomainAttr{})
//	peer, err := dom.Dial(ctx, "02:00:00:00:00:0b") // or an IP address
//	hits, err := xdpfab.Word[uint64](ctx, peer, "counters", 0)
//	n, err := hits.Add(ctx, 1) // ran exactly once on the other node
//
// [Word] finds a region by its name and an index in it; [Vector] takes all words of a
// region, for many at once, and [RemoteVector.At] one of them. [WordAt] and [VectorAt]
// take a [RemoteRegion] that was found before. [Peer.Read], [Peer.Write], [ReadSlice],
// [WriteSlice], [ReadStruct], [WriteStruct] and [BytesAt] copy bytes, numbers and structs
// from and to a region; [Peer.WriteSignal] changes a word when the bytes are there.
// [Peer.Flush] and [Domain.Quiet] wait until all that was begun has ended. Messages go by
// [Peer.Send] to a [Mailbox]:
//
//	box, err := dom.NewMailbox(xdpfab.MailboxAttr{Number: 5})
//	m, err := box.Receive(ctx, buf) // m.Bytes, m.From
//
//	peer, err := dom.Dial(ctx, "02:00:00:00:00:0b/5") // on another node
//	err = peer.Send(ctx, []byte("hello"))
//
// Beneath are the objects of libfabric by their own names, package [fi], for many
// operations in flight. A [Domain] has the methods of [fi.Domain].
//
// Close of a domain reports ErrBusy as long as anything on it is open, as
// fi_close(3) does; Domain.CloseAll closes everything.
//
// Bytes are copied by [Peer.Read] and [Peer.Write], by the [io.ReaderAt] and
// [io.WriterAt] that [BytesAt] returns, or posted as an [fi.RMA]; fi_rma(3). They are in
// one order with atomics, and no word of 8 bytes is ever torn.
//
// # Guarantees
//
// An operation that completes with success ran once. Any other ends with an error that
// wraps [ErrNotExecuted] (it never ran), [ErrOutcomeUnknown] or [ErrPeerRestarted] (it
// ran once or not at all), and the cause. Where an unknown outcome can still become
// known, [Settle] waits for it, and returns what the call would have returned. Operations
// of one endpoint to one peer apply in the order posted, unless the endpoint needs no
// order ([fi.OrderNone]). Every element is atomic against everything on the target's
// node, its own code with sync/atomic included, with two exceptions: elements of 32 bytes
// (long double complex), and complex ones that are not aligned to their whole size, are
// atomic against operations of the same datatype that the same process runs, and against
// nothing else. An array is not atomic as a whole.
//
// # When a peer restarts
//
// A handle is bound to the registration of the region that it was made from. After a
// restart of the peer it fails with [ErrPeerRestarted], until it is bound again by
// [Remote.Rebind] or, with [AutoRebind], by itself. docs/restarts.md in the project has
// recipes for limiters, counters and files.
//
// # When the network changes
//
// Addresses, routes and neighbours are followed while a domain is open. When its
// interface can no longer be used, [Domain.Done] is closed, [Domain.Err] has the cause,
// and everything that waits is released with it.
//
// # Running without a network
//
// [Pipe] joins two domains in memory. The examples use it; with two interfaces in
// place of it they run on two machines. [Domain.SetFaults] makes the cable lose, repeat,
// reorder, corrupt or delay packets. A [Network] has more nodes, which a test can
// separate, crash and restart.
package xdpfab
