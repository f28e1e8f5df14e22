// SPDX-License-Identifier: Apache-2.0

// Package xdpfab lets a program add to, swap, compare or read values in memory that
// another node has registered. The operation runs there exactly once, within a few
// microseconds, on any NIC that Linux has a driver for. Such remote atomics usually need
// RDMA hardware; xdpfab sends them over Ethernet by AF_XDP sockets. The semantics are
// those of libfabric's fi_atomic(3) and fi_domain(3).
//
// # Which type for what
//
//	Domain        an open interface: Open; or one in memory: Pipe and NewNetwork
//	Service       memory of this node that peers can use: Domain.Serve
//	Peer          an endpoint of another node: Domain.Dial
//	Remote        one word of a peer's region: Word finds it by the region's name;
//	              AddAtMost and similar functions change quotas, bits and fields
//	Pending       an operation under way: Remote.StartAdd and the other Start methods
//	RemoteVector  all words of a region; a call takes many at once, which is fastest: Vector
//	RemoteRegion  a region of a peer: Peer.Lookup. Peer.Read, Peer.Write, BytesAt, ReadSlice
//	              and ReadStruct, for instance, copy its bytes
//	Signal        a word that changes once the bytes are there: Peer.WriteSignal
//	Condition     the value that Wait waits for in a word of this node: Equal, AtLeast
//	Mailbox       an endpoint that receives the messages of Peer.Send: Domain.NewMailbox
//	Handler       an endpoint whose function answers Peer.Call: Domain.Handle
//	Cluster       the nodes of a directory, which it finds by name: NewCluster
//	Network       nodes in memory, which a test can separate, crash and restart
//
// Package [github.com/xdpfab/xdpfab/xdpfab/sync] builds locks, queues, limiters and
// counters from these. Package [fi] has libfabric's objects under their own names, for
// programs that keep many operations in flight; a [Domain] has all methods of
// [fi.Domain].
//
// # Words, bytes, messages
//
// A typed handle on a remote word has the methods of the types in sync/atomic:
//
//	dom, err := xdpfab.Open(ctx, "eth0", xdpfab.DomainAttr{})
//	peer, err := dom.Dial(ctx, "02:00:00:00:00:0b") // or an IP address
//	hits, err := xdpfab.Word[uint64](ctx, peer, "counters", 0)
//	n, err := hits.Add(ctx, 1) // ran exactly once on the other node
//
// Indexes count words, and offsets count bytes; both begin at 0. Copies of bytes and
// atomics to one peer run in the order in which they were begun, and no aligned word of 8
// bytes is ever torn. A mailbox receives messages:
//
//	box, err := dom.NewMailbox(xdpfab.MailboxAttr{Number: 5})
//	m, err := box.Receive(ctx, buf) // m.Bytes, m.From
//
//	peer, err := dom.Dial(ctx, "02:00:00:00:00:0b/5") // on another node
//	err = peer.Send(ctx, []byte("hello"))
//
// A call waits until its operation has ended, or its context. When the context ends,
// [Remote.WaitCompareAndSwap] and [Remote.WaitCompare] take another round trip, of 1 s at
// most, and [Mailbox.Receive] finishes a message that is arriving: if that has stopped,
// for the give-up time at most. [Peer.Flush] and [Domain.Quiet] wait until all operations
// that were begun have ended. Any number of goroutines may use a value of any type,
// unless DomainAttr.Threading says otherwise.
//
// Closing twice is no error. An operation fails with [ErrClosed] if its object is closed,
// nil or a zero value, and with [ErrArgument] if its context is nil. This holds for the
// methods of a nil Domain that this page shows; the others, of [fi.Domain], panic.
// [Domain.Close] fails with [ErrBusy] as long as anything on the domain is open, as
// fi_close(3) does; [Domain.CloseAll] closes everything.
//
// # Errors
//
// The error of an operation has two parts, and errors.Is finds both. The certainty says
// whether the operation ran, and so what the program can do:
//
//	ErrNotExecuted     it never ran and never will: mend the cause, and repeat it
//	ErrOutcomeUnknown  it ran once or not at all: Settle may find out which
//	ErrPeerRestarted   it ran once or not at all, and the memory may be new: Rebind or
//	                   Lookup, then decide
//
// The cause says why it failed. errors.Is finds libfabric's errno in it, too:
//
//	the way         ErrPeerSilent, ErrPeerClosed, ErrSessionLost, ErrRefused, ErrProtocol
//	the region      ErrNoRegion, ErrNoKey, ErrAccess, ErrOutOfBounds, ErrMisaligned
//	the operation   ErrOpNotSupported, ErrCount, ErrLength, ErrTooMany, ErrTooBig
//	the argument    ErrArgument, ErrForeign, ErrNotImplemented
//	the receiver    ErrNoReceiver of a message, ErrTruncated, FunctionError of a call
//	this node       ErrClosed, ErrBusy, ErrInterfaceLost, ErrHostLost, ErrDenied
//	Open            ErrNoInterface, ErrBusy, ErrDenied, os.ErrPermission
//	the context     context.Canceled, context.DeadlineExceeded, or its cause
//
// # Guarantees
//
// An operation that succeeds ran exactly once. Any other fails with an error that has a
// certainty, as above. If an unknown outcome can still become known, [Settle] waits for
// it, and returns the result that the call would have returned. The operations of one
// endpoint to one peer take effect in the order in which they were begun, unless the
// endpoint has [fi.OrderNone]. Calls have no order, and operations that wait at the peer
// take effect when their conditions hold.
//
// Each element is atomic against everything else on the target's node, including the
// target's own code that uses sync/atomic. There are three exceptions: elements of 32
// bytes (long double complex), those of 16 bytes where the CPU cannot exchange 16 at
// once, and complex elements that are not aligned to their whole size. These are atomic
// only against operations of the same datatype that the same process executes. An array
// as a whole is not atomic.
//
// # When a peer restarts
//
// A handle is bound to one registration of its region. After a restart of the peer each
// method fails with [ErrPeerRestarted], until the program calls [Remote.Rebind]. A handle
// with the option [AutoRebind] binds itself again. docs/restarts.md in the project has
// recipes for limiters, counters and files.
//
// # When the network changes
//
// An open domain follows changes of addresses, routes and neighbours. When it can no
// longer use its interface, it closes [Domain.Done], and each call that waits fails with
// the cause, which [Domain.Err] returns.
//
// # Running without a network
//
// [Pipe] joins two domains in memory by a cable. The examples use it, and run on two
// machines if each opens an interface instead. [Domain.SetFaults] makes the cable lose,
// repeat, reorder, corrupt or delay packets. A [Network] has more nodes, which a test can
// separate, crash and restart.
package xdpfab
