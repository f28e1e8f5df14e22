// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The error of an operation that failed wraps one of these three, its certainty, which
// says what is known of the operation's effect. See docs/guarantees in the project for
// the contract.
var (
	// ErrNotExecuted means that the operation never ran and never will.
	ErrNotExecuted = errno.NotExecuted
	// ErrOutcomeUnknown means that the operation ran once or not at all; of an array,
	// some elements may have been changed.
	ErrOutcomeUnknown = errors.New("outcome unknown")
	// ErrPeerRestarted means that the peer has lost its state, or that the region meant
	// no longer has its key: the memory may be new. The operation ran in the former life
	// once or not at all, unless the error says ErrNotExecuted as well.
	ErrPeerRestarted = errors.New("peer restarted")
)

// The causes. errors.Is matches each of them with itself, and with the code of
// fi_errno(3) that libfabric gives in its place: an [Errno], and the [syscall.Errno] if
// the system has it as well. Those that mean that something is not supported also match
// [errors.ErrUnsupported].
//
// Texts of errors begin with "xdpfab: ", once. ErrAgain, ErrErrorPending and
// ErrSignalled, which are not failures, are returned unwrapped.
var (
	ErrAgain          = reason(syscall.EAGAIN, "xdpfab: queue full, read completions and try again")
	ErrNoKey          = reason(ENOKEY, "no memory region with this key: unknown, or revoked")
	ErrNoRegion       = reason(syscall.ENOENT, "no memory region of this name")
	ErrAccess         = errno.Access
	ErrOutOfBounds    = errno.OutOfBounds
	ErrMisaligned     = errno.Misaligned
	ErrOpNotSupported = reason(syscall.EOPNOTSUPP,
		"operation not supported: for this datatype, or by the version of the peer")
	ErrNotImplemented = errno.NotImplemented
	ErrCount          = errno.Count
	ErrLength         = errno.Length
	ErrTooMany        = reason(syscall.EMSGSIZE, "more elements than one operation takes")
	ErrTooBig         = reason(syscall.EMSGSIZE, "more bytes than can be injected")
	ErrPeerSilent     = errno.PeerSilent
	ErrRefused        = reason(syscall.ECONNREFUSED, "peer refused the session")
	ErrSessionLost    = reason(syscall.ECONNRESET, "peer no longer knows the session")
	ErrPeerClosed     = reason(syscall.ECONNRESET, "peer closed the session")
	ErrProtocol       = errno.Protocol
	ErrClosed         = errno.Closed
	ErrBusy           = errno.Busy
	ErrUnknownPeer    = reason(syscall.EADDRNOTAVAIL, "no such address in the address vector")
	ErrNotEnabled     = reason(EOPBADSTATE, "endpoint is not enabled: bind what it needs and call Enable")
	ErrNoCQ           = reason(ENOCQ, "no completion queue")
	ErrNoAV           = reason(ENOAV, "no address vector")
	ErrNoRemoteCQ     = reason(syscall.ENOSYS, "the peer takes no data with operations: no completion queue is bound "+
		"with BindRecv to its endpoint, or its version is too old")
	ErrNoEQ         = reason(ENOEQ, "no event queue")
	ErrBadFlags     = reason(EBADFLAGS, "unsupported flags")
	ErrDenied       = errno.Denied
	ErrForeign      = errno.Foreign
	ErrArgument     = errno.Argument
	ErrErrorPending = reason(EAVAIL, "xdpfab: an error completion is next: take it with ReadErr")
	ErrSignalled    = reason(syscall.EAGAIN, "xdpfab: the wait was ended by Signal")

	// ErrInterfaceLost is wrapped by Domain.Err when the interface cannot be used any
	// more: it is gone, it was replaced, its hardware address changed, its MTU is below
	// that at Open, or its XDP program was detached. The text says which of these
	// happened. Close the domain and open the interface again.
	ErrInterfaceLost = errno.InterfaceLost
	// ErrNoInterface means that there is no interface of that name in the network
	// namespace.
	ErrNoInterface = errno.NoInterface
)

// ErrNotKept means that no region of that name is kept for the program's user.
var ErrNotKept = errno.NotKept

// ErrCancelled is the cause when a deferred operation was cancelled before it started, by
// CancelWork or FlushWork, or a receive by Cancel; or since its endpoint was closed.
var ErrCancelled = reason(syscall.ECANCELED, "cancelled before it began")

// OpError is the failure of one operation. errors.Is finds both the certainty
// (ErrNotExecuted, ErrOutcomeUnknown, ErrPeerRestarted) and the cause.
type OpError struct {
	Op        string // such as `Add of word 3 of region "x"`, or here `fetch sum uint64[1] at 0x18`
	Peer      string // the peer's address; empty for a receive without a message
	Certainty error  // nil for a receive, which is no operation of a peer's memory: the cause says all
	Cause     error

	prov    ProvErrno
	outcome *calls.Outcome // where an unknown outcome may become known
	stepper *node.Stepper
}

// Error names the operation and the peer, then what is known of the effect, and the
// cause. A watch has no effect: it tells why the session ended. A flush has none either:
// it says that operations may still be under way.
func (e *OpError) Error() string {
	switch {
	case e.Op == calls.Watch && e.Certainty == ErrPeerRestarted:
		return errno.Line("xdpfab: the session with %s ended: %v: %v", e.Peer, e.Certainty, e.Cause).Error()
	case e.Op == calls.Watch:
		return errno.Line("xdpfab: the session with %s ended: %v", e.Peer, e.Cause).Error()
	case e.Op == calls.Flush:
		return errno.Line("xdpfab: the flush ended early, so operations on %s may still be under way: %v", e.Peer,
			e.Cause).Error()
	case e.Certainty != nil:
		return errno.Line("xdpfab: %s on %s: %v: %v", e.Op, e.Peer, e.Certainty, e.Cause).Error()
	case e.Peer != "":
		return errno.Line("xdpfab: %s from %s: %v", e.Op, e.Peer, e.Cause).Error()
	}
	return errno.Line("xdpfab: %s: %v", e.Op, e.Cause).Error()
}

// Unwrap returns the certainty, if there is one, and the cause.
func (e *OpError) Unwrap() []error {
	if e.Certainty == nil {
		return []error{e.Cause}
	}
	return []error{e.Certainty, e.Cause}
}

// errGone is the cause when a registration has ended. It counts as a restart of the peer,
// which it may be: what the program knew of the memory is over.
var errGone = errno.Refuse(ErrPeerRestarted, "the region that was meant is gone: the peer has closed it, "+
	"registered it anew, or restarted: find it again by its name, with Rebind or Lookup")

// afterRestart adds to the cause of an operation that met a restart of the peer what the
// program can do.
func afterRestart(cause error, op string) error {
	switch verb, _, _ := strings.Cut(op, " of "); verb {
	case wire.VerbCall.String():
		return fmt.Errorf("%w: call it again", cause)
	case wire.VerbSend.String(), wire.VerbTagged.String():
		return fmt.Errorf("%w: send it again", cause)
	}
	return fmt.Errorf("%w: the memory may be new: find its regions again by their names, with Rebind or Lookup", cause)
}

// errClosedHere is the cause when the session of an operation was closed on this side.
var errClosedHere = errno.Refuse(ErrClosed, "this program has closed the endpoint, or its use of the peer: "+
	"open it again")

var causeOfStatus = map[wire.Status]error{
	wire.StatusNoKey:       ErrNoKey,
	wire.StatusNoAccess:    ErrAccess,
	wire.StatusOutOfBounds: ErrOutOfBounds,
	wire.StatusMisaligned:  ErrMisaligned,
	wire.StatusUnsupported: ErrOpNotSupported,
	wire.StatusBadCount:    ErrCount,
	wire.StatusNotFound:    ErrNoRegion,
	wire.StatusNotExecuted: ErrPeerClosed,
	wire.StatusNoRoom: fmt.Errorf("%w: it holds as many requests as it may, of one address half of "+
		"HandlerAttr.Requests; try again later", ErrBusy),
	wire.StatusStale: errGone,
}

var causeOfReason = map[session.Reason]error{
	session.PeerSilent:      ErrPeerSilent,
	session.GaveUp:          ErrPeerSilent,
	session.PeerRestarted:   ErrPeerRestarted,
	session.Forgotten:       ErrSessionLost,
	session.Outdated:        ErrProtocol,
	session.PeerClosed:      ErrPeerClosed,
	session.RefusedEndpoint: fmt.Errorf("%w: it has no such endpoint", ErrRefused),
	session.RefusedFull:     fmt.Errorf("%w: no room for another session (xdpfabd --sessions)", ErrRefused),
	session.RefusedVersion:  fmt.Errorf("%w: it speaks another version of the protocol", ErrRefused),
	session.RefusedClosing:  errno.Refuse(ErrPeerClosed, "%w: it is shutting down", ErrRefused),
	session.RefusedKeyless:  errKeyWanted,
	session.RefusedKey:      errKeyUnwanted,
	session.RefusedOtherKey: errKeyWrong,
	session.Unproven:        errUnproven,
	session.ProtocolError:   ErrProtocol,
	session.ClosedHere:      ErrClosed,
	session.NoEvents:        ErrNoRemoteCQ,
	session.NoMessages:      ErrNoReceiver,
	session.Rejected:        fmt.Errorf("%w: its program rejected the connection", ErrRefused),
	session.Unanswered:      ErrUnanswered,
	session.HostLost:        ErrHostLost,
	session.Crowded: fmt.Errorf("%w: as many operations wait as may: at the peer 64 of an endpoint, 512 of an address "+
		"and 4096 at a queue, and 64 of a program behind a daemon: begin this one when another has ended", ErrBusy),
	session.Cancelled: context.Canceled, // in place of the context's own cause
}

var certainties = map[engine.Outcome]error{
	engine.NotExecuted: ErrNotExecuted,
	engine.Unknown:     ErrOutcomeUnknown,
	engine.Restarted:   ErrPeerRestarted,
}

// resultOf returns how a submission ended. If no region has the key, the registration
// that the submission meant is gone, as it is if another region has the key.
func resultOf(s *engine.Submission, c *engine.Completion, later *engine.Later) engine.Result {
	r := c.Result(later)
	if r.Status == wire.StatusNoKey && s.Incarnation != 0 {
		r.Status = wire.StatusStale
	}
	return r
}

// errorOf turns the result of an operation that failed into an error.
func errorOf(r engine.Result, op, peer string) *OpError {
	cause := causeOfStatus[r.Status]
	if cause == nil {
		cause = causeOfReason[r.Reason]
	}
	switch {
	case r.Outcome == engine.Restarted:
		cause = afterRestart(ErrSessionLost, op)
	case cause == ErrPeerRestarted:
		cause = afterRestart(cause, op)
	case r.Outcome == engine.Unknown && errors.Is(cause, ErrRefused):
		cause = fmt.Errorf("%w: it answers, but has forgotten the session before, as after a restart: start there "+
			"what served", cause)
	case r.Reason == session.RefusedEndpoint && dials(numberIn(peer)):
		cause = fmt.Errorf("%w: number %s is not open there: a number so high is, as a rule, that of Domain.Dial, to "+
			"which nothing can be sent: have the program there send by Mailbox.Dial, and answer its mailbox", cause,
			numberIn(peer))
	case r.Reason == session.RefusedEndpoint:
		cause = fmt.Errorf("%w: number %s is not open there: dial another one, or have a program there open it "+
			"(Domain.Serve, NewMailbox, Handle, NewEndpoint)", cause, numberIn(peer))
	}
	return &OpError{Op: op, Peer: peer, Certainty: certainties[r.Outcome], Cause: cause, prov: provErrnoOf(r),
		outcome: calls.OutcomeOf(r)}
}

// numberIn returns the endpoint number in an address or a host's name.
func numberIn(addr string) string {
	if _, number, found := strings.Cut(addr, "/"); found {
		return number
	}
	return "0"
}

// dials reports whether a number is one of the highest, which endpoints have that only
// dial, unless the program has chosen it.
func dials(number string) bool {
	n, err := strconv.ParseUint(number, 10, 16)
	return err == nil && n >= 0xff00
}

// by fills in the driver of an operation of the endpoint that failed, and what the domain
// knows of the cause: how it ended, or that the peer is silent.
func (e *OpError) by(ep *endpoint, s *engine.Submission) *OpError {
	e.stepper = ep.stepper
	if errors.Is(e.Cause, ErrClosed) {
		e.Cause = errClosedHere
		if end := ep.stepper.End.Err(); end != nil {
			e.Cause = end
		}
	}
	e.Cause = ep.whySilent(e.Cause, e.Peer, s)
	return e
}

// withoutEffect makes the error that of an operation that changes nothing: it counts as
// not executed, whatever is known of it, and a restart of the peer is the cause.
func (e *OpError) withoutEffect() {
	if e.Certainty == ErrPeerRestarted {
		e.Cause = fmt.Errorf("%w: %w", ErrPeerRestarted, e.Cause)
	}
	e.Certainty, e.outcome = ErrNotExecuted, nil
}

// whySilent adds to the cause that a peer is silent what is known of that.
func (ep *endpoint) whySilent(cause error, addr string, s *engine.Submission) error {
	if cause != ErrPeerSilent {
		return cause
	}
	return &calls.Silence{Cause: cause, Peer: addr, Node: ep.dom.node, Known: ep.origin.Silence(s.Peer),
		Bytes: int(s.Count) * atomic.Datatype(s.Datatype).Size()}
}

// ProvErrno is how an operation failed, in the terms of the protocol: prov_errno of an
// error entry; see fi_cq(3). Equal failures have equal numbers, for logs and statistics;
// programs decide by errors.Is and by OpError.Errno. 0 is no failure.
type ProvErrno uint32

// A number has the outcome of the operation in bits 16 to 23, the reason why the session
// ended in bits 8 to 15, and the status from the target in bits 0 to 7.
func provErrnoOf(r engine.Result) ProvErrno {
	return ProvErrno(r.Outcome)<<16 | ProvErrno(r.Reason)<<8 | ProvErrno(r.Status)
}

// String returns the failure in words (fi_cq_strerror).
func (e ProvErrno) String() string {
	if e == 0 {
		return "success"
	}
	outcome, reason, status := engine.Outcome(e>>16), session.Reason(e>>8), wire.Status(e)
	known := certainties[outcome]
	if known == nil {
		return fmt.Sprintf("ProvErrno(%#x)", uint32(e))
	}
	if status != wire.StatusOK {
		return fmt.Sprintf("%v: target: %v", known, status)
	}
	return fmt.Sprintf("%v: session: %v", known, reason)
}

// Errno returns the fabric error code of the failure (err of an error entry): that of its
// cause.
func (e *OpError) Errno() Errno {
	code, _ := ErrnoOf(e)
	return code
}

// ProvErrno returns the failure in the terms of the protocol.
func (e *OpError) ProvErrno() ProvErrno { return e.prov }

// Open reports whether the outcome of the operation may still become known, so that
// Resolve can say more than the error does.
func (e *OpError) Open() bool {
	if e.outcome == nil {
		return false
	}
	_, _, wait := e.outcome.Known()
	return wait != nil
}

// Resolve waits until the outcome of an operation, which was unknown, is known. When the
// context of the operation ended early, that takes as long as the operation itself. When
// a partition outlasted the give-up time, it takes until the partition heals: then the
// target can tell from its cache. ran says whether the operation took effect, and result
// is its result, if it has one.
//
// If ctx ends first, its error is returned and Resolve may be called again. Any other
// error is final: the outcome will never be known. Either the target has restarted
// (ErrPeerRestarted); or it was silent for a minute, another session to it was given up
// meanwhile, it had no room to remember the session, or only a part of an array ran
// (ErrOutcomeUnknown).
func (e *OpError) Resolve(ctx context.Context) (ran bool, result []byte, err error) {
	if errors.Is(e.Certainty, ErrNotExecuted) {
		return false, nil, nil
	}
	if err := errno.NoContext(ctx); err != nil {
		return false, nil, err
	}
	if e.outcome == nil {
		return false, nil, e
	}
	for {
		r, data, wait := e.outcome.Known()
		if wait != nil {
			if err := e.stepper.WaitFor(ctx, wait); err != nil && e.Open() {
				return false, nil, err
			}
			continue
		}
		switch r.Outcome {
		case engine.Success:
			return true, data, nil
		case engine.NotExecuted:
			return false, nil, nil
		}
		return false, nil, errorOf(engine.Result{Outcome: r.Outcome, Status: r.Status, Reason: r.Reason}, e.Op, e.Peer)
	}
}
