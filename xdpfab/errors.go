// SPDX-License-Identifier: Apache-2.0

package xdpfab

import "github.com/xdpfab/xdpfab/xdpfab/fi"

// OpError is the failure of one operation. errors.Is finds both the certainty
// (ErrNotExecuted, ErrOutcomeUnknown, ErrPeerRestarted) and the cause. [Settle] is the
// short way to learn an outcome that was unknown. Of [fi.OpError] it has
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
	// ErrOutcomeUnknown means that the operation ran once or not at all; of an
	// array, some elements may have been changed.
	ErrOutcomeUnknown = fi.ErrOutcomeUnknown
	// ErrPeerRestarted means that the peer has lost its state, or that the region meant
	// no longer has its key: the memory may be new. The operation ran in
	// the former life once or not at all, unless the error says ErrNotExecuted as well.
	ErrPeerRestarted = fi.ErrPeerRestarted
)

// The causes. Texts of errors begin with "xdpfab: ", once.
var (
	ErrNoKey          = fi.ErrNoKey
	ErrNoRegion       = fi.ErrNoRegion
	ErrAccess         = fi.ErrAccess
	ErrOutOfBounds    = fi.ErrOutOfBounds
	ErrMisaligned     = fi.ErrMisaligned
	ErrOpNotSupported = fi.ErrOpNotSupported
	ErrNotImplemented = fi.ErrNotImplemented
	ErrCount          = fi.ErrCount
	ErrLength         = fi.ErrLength
	ErrTooMany        = fi.ErrTooMany
	ErrTooBig         = fi.ErrTooBig
	ErrTruncated      = fi.ErrTruncated
	ErrPeerSilent     = fi.ErrPeerSilent
	ErrRefused        = fi.ErrRefused
	ErrSessionLost    = fi.ErrSessionLost
	ErrPeerClosed     = fi.ErrPeerClosed
	ErrProtocol       = fi.ErrProtocol
	ErrHostLost       = fi.ErrHostLost
	ErrClosed         = fi.ErrClosed
	ErrBusy           = fi.ErrBusy
	ErrDenied         = fi.ErrDenied
	ErrForeign        = fi.ErrForeign
	ErrInterfaceLost  = fi.ErrInterfaceLost // see Domain.Err
)
