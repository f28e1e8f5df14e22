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

// What an operation that did not succeed wraps: exactly one of these three says
// what is known of its effect. See docs/guarantees in the project for the
// contract.
var (
	// ErrNotExecuted means that the operation never ran and never will.
	ErrNotExecuted = errors.New("not executed")
	// ErrOutcomeUnknown means that the operation ran once or not at all; of an
	// array, some elements may have been changed.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrPeerRestarted means the same as ErrOutcomeUnknown, and that the peer has
	// lost its state: its memory may be new.
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
	ErrSessionLost  = errors.New("peer does not know the session any more: it has restarted")   // FI_ECONNRESET
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

	later *engine.Later // where an unknown outcome may become known
	drv   *driver
}

func (e *OpError) Error() string {
	return fmt.Sprintf("xdpfab: %s on %s: %v: %v", e.Op, e.Peer, e.Certainty, e.Cause)
}

// Unwrap returns the certainty and the cause.
func (e *OpError) Unwrap() []error { return []error{e.Certainty, e.Cause} }

// Resolve waits until it is known what became of an operation whose outcome was
// unknown: after a partition that outlasted the give-up time heals, the target can
// tell from its cache. ran says whether the operation took effect, and result is
// what it returned, if it returns something.
//
// An error means that it will never be known: the target has restarted
// (ErrPeerRestarted); or it was not heard of for a minute, another session to it was
// given up meanwhile, or of an array a part ran and the rest did not
// (ErrOutcomeUnknown). If ctx ends first, its error is returned and Resolve may be
// called again.
func (e *OpError) Resolve(ctx context.Context) (ran bool, result []byte, err error) {
	if errors.Is(e.Certainty, ErrNotExecuted) {
		return false, nil, nil
	}
	if e.later == nil {
		return false, nil, e
	}
	if err := e.drv.waitFor(ctx, e.later.Done()); err != nil {
		return false, nil, err
	}
	switch r, data := e.later.Outcome(); r.Fate {
	case engine.Success:
		return true, data, nil
	case engine.NotExecuted:
		return false, nil, nil
	default:
		return false, nil, errorOf(r, e.Op, e.Peer)
	}
}

var causeOfStatus = map[wire.Status]error{
	wire.StatusNoKey:       ErrNoKey,
	wire.StatusNoAccess:    ErrAccess,
	wire.StatusOutOfBounds: ErrOutOfBounds,
	wire.StatusMisaligned:  ErrMisaligned,
	wire.StatusUnsupported: ErrUnsupported,
	wire.StatusBadCount:    ErrCount,
	wire.StatusNotFound:    ErrNoRegion,
	wire.StatusNotExecuted: ErrPeerClosed,
}

var causeOfReason = map[session.Reason]error{
	session.PeerSilent:      ErrPeerSilent,
	session.GaveUp:          ErrPeerSilent,
	session.PeerRestarted:   ErrSessionLost,
	session.PeerClosed:      ErrPeerClosed,
	session.RefusedEndpoint: fmt.Errorf("%w: it has no such endpoint", ErrRefused),
	session.RefusedFull:     fmt.Errorf("%w: no room for another session", ErrRefused),
	session.RefusedVersion:  fmt.Errorf("%w: it speaks another version of the protocol", ErrRefused),
	session.RefusedClosing:  fmt.Errorf("%w: it is shutting down", ErrRefused),
	session.ProtocolError:   ErrProtocol,
	session.ClosedHere:      ErrClosed,
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
	return &OpError{Op: op, Peer: peer, Certainty: certainties[r.Fate], Cause: cause, later: r.Later}
}
