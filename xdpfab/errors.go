// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"context"
	"errors"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// What an operation that did not succeed wraps: one of these three, as its certainty,
// says what is known of its effect. See docs/guarantees in the project for the
// contract.
var (
	// ErrNotExecuted means that the operation never ran and never will.
	ErrNotExecuted = errors.New("not executed")
	// ErrOutcomeUnknown means that the operation ran once or not at all; of an
	// array, some elements may have been changed.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrPeerRestarted means that the peer has lost its state, or that the region meant
	// is not the one that has its key now: the memory may be new. The operation ran in
	// the former life once or not at all, unless the error says ErrNotExecuted as well.
	ErrPeerRestarted = errors.New("peer restarted")
)

// Why. Each names the errno of fi_errno(3) that libfabric gives in its place.
var (
	ErrAgain        = errors.New("queue full, read completions and try again")                  // FI_EAGAIN
	ErrNoKey        = errors.New("no memory region with this key: unknown, or revoked")         // FI_ENOKEY
	ErrNoRegion     = errors.New("no memory region of this name")                               // FI_ENOENT
	ErrAccess       = errors.New("the memory region does not grant this right")                 // FI_EACCES
	ErrOutOfBounds  = errors.New("beyond the end of the memory region")                         // FI_EINVAL
	ErrMisaligned   = errors.New("address is not a multiple of the element's alignment")        // FI_EINVAL
	ErrUnsupported  = errors.New("operation not supported for this datatype")                   // FI_EOPNOTSUPP
	ErrCount        = errors.New("impossible element count")                                    // FI_EINVAL
	ErrLength       = errors.New("buffer length does not match the element count")              // FI_EINVAL
	ErrTooMany      = errors.New("more elements than one operation takes")                      // FI_EMSGSIZE
	ErrTooBig       = errors.New("more bytes than can be injected")                             // FI_EMSGSIZE
	ErrPeerSilent   = errors.New("peer does not answer")                                        // FI_ETIMEDOUT
	ErrRefused      = errors.New("peer refused the session")                                    // FI_ECONNREFUSED
	ErrSessionLost  = errors.New("peer does not know the session any more")                     // FI_ECONNRESET
	ErrPeerClosed   = errors.New("peer closed the session")                                     // FI_ECONNRESET
	ErrProtocol     = errors.New("peer violated the protocol")                                  // FI_EPROTO
	ErrClosed       = errors.New("closed")                                                      // FI_EBADF
	ErrBusy         = errors.New("in use")                                                      // FI_EBUSY
	ErrUnknownPeer  = errors.New("no such address in the address vector")                       // FI_EADDRNOTAVAIL
	ErrNotEnabled   = errors.New("endpoint is not enabled: bind what it needs and call Enable") // FI_EOPBADSTATE
	ErrNotSupported = errors.New("not supported by this provider")                              // FI_ENOSYS
	ErrAvailable    = errors.New("an error completion is next: take it with ReadErr")           // FI_EAVAIL
)

// OpError is the failure of one operation. errors.Is finds both the certainty
// (ErrNotExecuted, ErrOutcomeUnknown, ErrPeerRestarted) and the cause.
type OpError struct {
	Op        string // "fetch_atomic sum uint64"
	Peer      string // the peer's address
	Certainty error
	Cause     error

	outcome *outcome // where an unknown outcome may become known
	stepper *stepper
}

func (e *OpError) Error() string {
	return fmt.Sprintf("xdpfab: %s on %s: %v: %v", e.Op, e.Peer, e.Certainty, e.Cause)
}

// Unwrap returns the certainty and the cause.
func (e *OpError) Unwrap() []error { return []error{e.Certainty, e.Cause} }

var causeOfStatus = map[wire.Status]error{
	wire.StatusNoKey:       ErrNoKey,
	wire.StatusNoAccess:    ErrAccess,
	wire.StatusOutOfBounds: ErrOutOfBounds,
	wire.StatusMisaligned:  ErrMisaligned,
	wire.StatusUnsupported: ErrUnsupported,
	wire.StatusBadCount:    ErrCount,
	wire.StatusNotFound:    ErrNoRegion,
	wire.StatusNotExecuted: ErrPeerClosed,
	wire.StatusStale:       fmt.Errorf("%w: the region that was meant is gone, another one has its key", ErrPeerRestarted),
}

var causeOfReason = map[session.Reason]error{
	session.PeerSilent:      ErrPeerSilent,
	session.GaveUp:          ErrPeerSilent,
	session.PeerRestarted:   ErrPeerRestarted,
	session.Forgotten:       ErrSessionLost,
	session.Outdated:        ErrProtocol,
	session.PeerClosed:      ErrPeerClosed,
	session.RefusedEndpoint: fmt.Errorf("%w: it has no such endpoint", ErrRefused),
	session.RefusedFull:     fmt.Errorf("%w: no room for another session", ErrRefused),
	session.RefusedVersion:  fmt.Errorf("%w: it speaks another version of the protocol", ErrRefused),
	session.RefusedClosing:  fmt.Errorf("%w: it is shutting down", ErrRefused),
	session.ProtocolError:   ErrProtocol,
	session.ClosedHere:      ErrClosed,
	session.Cancelled:       context.Canceled, // in place of the context's own cause
}

var certainties = map[engine.Fate]error{
	engine.NotExecuted: ErrNotExecuted,
	engine.Unknown:     ErrOutcomeUnknown,
	engine.Restarted:   ErrPeerRestarted,
}

// errorOf turns the result of an operation that failed into an error.
func errorOf(r engine.Result, op, peer string) *OpError {
	cause := causeOfStatus[r.Status]
	if cause == nil {
		cause = causeOfReason[r.Reason]
	}
	if r.Fate == engine.Restarted {
		cause = ErrSessionLost
	}
	return &OpError{Op: op, Peer: peer, Certainty: certainties[r.Fate], Cause: cause, outcome: outcomeOf(r)}
}
