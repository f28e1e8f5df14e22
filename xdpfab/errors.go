// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "github.com/xdpfab/xdpfab/xdpfab/fi"

// OpError is the failure of one operation. errors.Is finds both its certainty
// (ErrNotExecuted, ErrOutcomeUnknown, ErrPeerRestarted) and its cause. Most programs need
// only errors.Is and [Settle]. The fields and methods of [fi.OpError] are
//
//	fields    Op, Peer, Certainty, Cause
//	outcome   Open, whether it may become known; Resolve, which waits for it
//	codes     Errno of fi_errno(3); ProvErrno, for logs
//	errors    Error, Unwrap
type OpError = fi.OpError

// The error of an operation that failed wraps one of these three, its certainty, which
// says what is known of the operation's effect.
var (
	// ErrNotExecuted means that the operation never ran and never will.
	ErrNotExecuted = fi.ErrNotExecuted
	// ErrOutcomeUnknown means that the operation ran once or not at all; of an array,
	// some elements may have been changed.
	ErrOutcomeUnknown = fi.ErrOutcomeUnknown
	// ErrPeerRestarted means that the peer has lost its state, or that the region meant
	// no longer has its key: the memory may be new. The operation ran in the former life
	// once or not at all, unless the error says ErrNotExecuted as well.
	ErrPeerRestarted = fi.ErrPeerRestarted
)

// The causes. Texts of errors begin with "xdpfab: ", once.
var (
	// ErrNoKey means that no region of the peer has the key: it is unknown, or withdrawn.
	ErrNoKey = fi.ErrNoKey
	// ErrNoRegion means that the peer has no region of that name.
	ErrNoRegion = fi.ErrNoRegion
	// ErrAccess means that the region does not admit the operation.
	ErrAccess = fi.ErrAccess
	// ErrOutOfBounds means that the words end beyond the region.
	ErrOutOfBounds = fi.ErrOutOfBounds
	// ErrMisaligned means that the address is no multiple of the element's alignment.
	ErrMisaligned = fi.ErrMisaligned
	// ErrOpNotSupported means that datatype or peer lack the operation.
	ErrOpNotSupported = fi.ErrOpNotSupported
	// ErrNotImplemented means that xdpfab does not do this; the text says what it does.
	ErrNotImplemented = fi.ErrNotImplemented
	// ErrCount means that an operation cannot have that number of elements.
	ErrCount = fi.ErrCount
	// ErrLength means that slices, or another length, do not fit the operation.
	ErrLength = fi.ErrLength
	// ErrTooMany means more elements than one operation takes.
	ErrTooMany = fi.ErrTooMany
	// ErrTooBig means more bytes than can be injected.
	ErrTooBig = fi.ErrTooBig
	// ErrTruncated means that a message was longer than the buffer of its receive.
	ErrTruncated = fi.ErrTruncated
	// ErrNoReceiver means that the endpoint that was dialled receives no messages: it is
	// no Mailbox.
	ErrNoReceiver = fi.ErrNoReceiver
	// ErrPeerSilent means that the peer did not answer within the give-up time.
	ErrPeerSilent = fi.ErrPeerSilent
	// ErrRefused means that the peer refused the session: look at its log.
	ErrRefused = fi.ErrRefused
	// ErrSessionLost means that the peer no longer knows the session.
	ErrSessionLost = fi.ErrSessionLost
	// ErrPeerClosed means that the peer closed the session.
	ErrPeerClosed = fi.ErrPeerClosed
	// ErrProtocol means that the peer broke the protocol, or has another version of it.
	ErrProtocol = fi.ErrProtocol
	// ErrHostLost means that the daemon to which the domain was attached is gone. The
	// domain continues with the next daemon; one that borrowed a queue ends.
	ErrHostLost = fi.ErrHostLost
	// ErrClosed means that what was used is closed.
	ErrClosed = fi.ErrClosed
	// ErrBusy means that something else has it, or still uses it.
	ErrBusy = fi.ErrBusy
	// ErrDenied means that a rule of the daemon forbids it.
	ErrDenied = fi.ErrDenied
	// ErrArgument means that no call accepts such an argument or attribute, such as a
	// text that is no address. The text names it, and what is wanted.
	ErrArgument = fi.ErrArgument
	// ErrForeign means that it belongs to another domain.
	ErrForeign = fi.ErrForeign
	// ErrInterfaceLost means that the interface cannot be used any more: see Domain.Err.
	ErrInterfaceLost = fi.ErrInterfaceLost
	// ErrNoInterface means that there is no interface of that name in the network
	// namespace.
	ErrNoInterface = fi.ErrNoInterface
)
