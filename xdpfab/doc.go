// SPDX-License-Identifier: Apache-2.0

// Package xdpfab is remote atomics for Ethernet clusters. A program adds to, swaps,
// compares or reads values in memory that another node registered; the operation runs
// there, exactly once, in a few microseconds, on any NIC that Linux has a driver for. The
// semantics are libfabric's, fi_atomic(3) and fi_domain(3); in place of RDMA queues there
// are AF_XDP sockets.
//
// # Which type for what
//
//	Domain        an interface in use: Open; or, in memory, Pipe and NewNetwork
//	Service       memory of this node that peers can use: Domain.Serve
//	Peer          an endpoint of another node: Domain.Dial
//	Remote        a word of a peer's region: Word by its name, WordAt; AddAtMost and the
//	              like for quotas, bits and fields; Pending for what Start has begun
//	RemoteVector  many words at once, which is fastest: Vector, VectorAt
//	RemoteRegion  a region, for bytes: Peer.Lookup; then Peer.Read, Peer.Write, BytesAt,
//	              ReadSlice and WriteSlice, ReadStruct and WriteStruct
//	Signal        a word that changes when the bytes are there: Peer.WriteSignal
//	Condition     what a word of this node is waited to be: Wait
//	Mailbox       receives the messages of Peer.Send: Domain.NewMailbox
//	Handler       a function that answers Peer.Call: Domain.Handle
//	Cluster       the nodes of a directory, by their names: NewCluster
//	Network       nodes in memory, which tests separate, crash and restart
//
// Package [github.com/xdpfab/xdpfab/xdpfab/sync] has locks, queues, limiters and counters
// made of these. Package [fi] has the objects of libfabric by their own names, for many
// operations in flight; a [Domain] has the methods of [fi.Domain].
//
// # Words, bytes, messages
//
// The shortest way is a typed handle on a remote word, in the shape of sync/atomic:
//
//	dom, err := xdpfab.Open(ctx, "eth0", xdpfab.DomainAttr{})
//	peer, err := dom.Dial(ctx, "02:00:00:00:00:0b") // or an IP address
//	hits, err := xdpfab.Word[uint64](ctx, peer, "counters", 0)
//	n, err := hits.Add(ctx, 1) // ran exactly once on the other node
//
// Indexes count words, offsets count bytes; both begin at 0. Bytes that are copied are in
// one order with atomics, and no word of 8 bytes is ever torn. Messages go to a mailbox:
//
//	box, err := dom.NewMailbox(xdpfab.MailboxAttr{Number: 5})
//	m, err := box.Receive(ctx, buf) // m.Bytes, m.From
//
//	peer, err := dom.Dial(ctx, "02:00:00:00:00:0b/5") // on another node
//	err = peer.Send(ctx, []byte("hello"))
//
// Calls wait for their operation; their context ends the wait. [Peer.Flush] and
// [Domain.Quiet] wait until all that was begun has ended. All types may be used by any
// number of goroutines, unless DomainAttr.Threading says otherwise. Closing twice is no
// error; an operation on what is closed, nil or a zero value fails with [ErrClosed]. So
// do the methods of a nil Domain that this page shows; the others of [fi.Domain] panic.
// Close of a domain reports [ErrBusy] as long as anything on it is open, as fi_close(3)
// does; Domain.CloseAll closes everything.
//
// # Errors
//
// The error of an operation has two parts that errors.Is finds. Its certainty says what
// is known of the effect, and what to do:
//
//	ErrNotExecuted     it never ran: it may be repeated, once the cause is mended
//	ErrOutcomeUnknown  it ran once or not at all: Settle may find out
//	ErrPeerRestarted   the memory may be new: Rebind or Lookup, then decide
//
// The cause says why, and errors.Is finds an errno of libfabric in it, too:
//
//	the way         ErrPeerSilent, ErrPeerClosed, ErrSessionLost, ErrRefused, ErrProtocol
//	the region      ErrNoRegion, ErrNoKey, ErrAccess, ErrOutOfBounds, ErrMisaligned
//	the operation   ErrOpNotSupported, ErrCount, ErrLength, ErrTooMany, ErrTooBig
//	the argument    ErrArgument, ErrForeign, ErrNotImplemented
//	the receiver    ErrNoReceiver of a message, ErrTruncated, FunctionError of a call
//	this node       ErrClosed, ErrBusy, ErrInterfaceLost, ErrHostLost, ErrDenied
//	the context     context.Canceled, context.DeadlineExceeded, or its cause
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
// [Pipe] joins two domains in memory. The examples use it; with two interfaces in place
// of it they run on two machines. [Domain.SetFaults] makes the cable lose, repeat,
// reorder, corrupt or delay packets. A [Network] has more nodes, which a test can
// separate, crash and restart.
package xdpfab
