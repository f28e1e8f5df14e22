// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/calls"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Every call posts its operation in three steps: claim gets a submission, the call fills
// it in, and hand gives it to the engine. A goroutine that gets the turn keeps it for
// these three steps and posts to the engine directly. Otherwise the submission goes
// through the ring. Operations on one word have a shorter way besides: see postWord.

// claim returns a submission to fill in. An operation whose success makes an entry takes
// its place in the completion queue too.
func (ep *endpoint) claim(cookie uint64) (calls.Claimed, error) {
	if ep.stepper.TryHold() {
		if ep.enter(cookie) {
			if s := ep.stepper.Eng.Begin(ep.ring); s != nil {
				return calls.Claimed{Submission: s, Way: calls.Direct}, nil
			}
			ep.leave(cookie)
		}
		ep.stepper.Release()
	}
	s, err := ep.queue(cookie)
	return calls.Claimed{Submission: s, Way: calls.Queued}, err
}

// enter takes the places that an operation needs, for a goroutine with the turn, and
// leave gives them back. Shutdown looks whether all operations have completed, and no
// other goroutine has the turn then.
func (ep *endpoint) enter(cookie uint64) bool {
	if !ep.ready() || !ep.shared.take() {
		return false
	}
	if q := ep.cq; q != nil && cookie&silent == 0 {
		if q.borrow() {
			return true
		}
	} else if ep.admits() {
		return true
	}
	ep.shared.give(1)
	return false
}

func (ep *endpoint) leave(cookie uint64) {
	ep.shared.give(1)
	if cookie&silent == 0 && ep.cq != nil {
		ep.cq.lent++
		ep.cq.repay()
	}
}

// queue is claim by way of the ring, when another goroutine has the turn, or the
// operation has to wait behind others.
func (ep *endpoint) queue(cookie uint64) (*engine.Submission, error) {
	if err := ep.reserve(cookie); err != nil {
		return nil, err
	}
	s, err := ep.claimEntry()
	if err != nil {
		ep.unreserve(cookie)
	}
	return s, err
}

// reserve takes a place in the shared transmit context and in the completion queue, as
// far as there are any; unreserve gives it back. A caller that gets none makes progress.
func (ep *endpoint) reserve(cookie uint64) error {
	if ep.shared.take() {
		if places := cookie&silent == 0 && ep.cq != nil; places && ep.cq.reserve() || !places && ep.admits() {
			return nil
		}
		ep.shared.give(1)
	}
	ep.dom.Progress()
	return ErrAgain
}

func (ep *endpoint) unreserve(cookie uint64) {
	ep.shared.give(1)
	if cookie&silent == 0 && ep.cq != nil {
		ep.cq.reserved.Add(-1)
	}
	ep.dom.Progress()
}

// hand gives a submission that was filled in to the engine.
func (ep *endpoint) hand(c calls.Claimed) {
	switch c.Way {
	case calls.Queued:
		c.Publish()
		return
	case calls.Direct:
		ep.stepper.Eng.Submit(ep.ring)
	}
	ep.stepper.Release()
}

// claimEntry takes an entry of the submission ring. It looks twice whether the endpoint
// is open: before, because the ring of a closed endpoint is no longer collected, so that
// an entry claimed from it would be lost for good; and afterwards, because Close waits
// for the entries that were claimed until then.
func (ep *endpoint) claimEntry() (*engine.Submission, error) {
	if !ep.ready() {
		return nil, ep.unready()
	}
	s := ep.ring.Claim()
	if s == nil {
		return nil, ErrAgain
	}
	if !ep.ready() {
		s.Release()
		return nil, ep.unready()
	}
	return s, nil
}

// ready reports whether operations may be posted.
func (ep *endpoint) ready() bool { return ep.phase.Load() == enabled }

// unready returns why ready was false. An endpoint that is enabled by now was not then.
func (ep *endpoint) unready() error {
	if ep.phase.Load() >= draining {
		return ep.errClosed()
	}
	return fmt.Errorf("xdpfab: endpoint %d: %w", ep.number, ErrNotEnabled)
}

// Flags in the cookie of an operation, in addition to its Address.
const (
	silent = 1 << 63 // success makes no completion, and the operation takes no place in the queue
	asked  = 1 << 62 // only a call waits for it: see Endpoint.Lookup
)

// admits reports whether an operation that takes no place in a completion queue may be
// posted. See failures.
func (ep *endpoint) admits() bool {
	return ep.cq == nil || ep.cq.failures.shown.Load() < ep.cq.size
}

// sink is the endpoint as the engine knows it.
type sink endpoint

// Complete implements the engine's Sink: it fills the completion queue and the counters.
// Engine's thread.
func (e *sink) Complete(s *engine.Submission, c *engine.Completion, later *engine.Later) {
	ep, ok := (*endpoint)(e), c.Outcome == engine.Success
	ep.shared.give(1)
	if c.Cookie&asked != 0 {
		ep.answer(s, c, later)
		return
	}
	switch {
	case ep.cq == nil:
	case !ok && c.Cookie&silent != 0:
		ep.cq.pushFailure(ep, s.Context, c, ep.errorFor(s, c, later))
	case !ok:
		ep.cq.push(ep, s.Context, c, ep.errorFor(s, c, later))
	case c.Cookie&silent == 0:
		ep.cq.push(ep, s.Context, c, nil)
	}
	switch counter := ep.cntr[direction(c.Flags)]; {
	case counter == nil || s.Verb == engine.VerbFlush:
	case ok:
		counter.succeeded(1, c.Length)
	default:
		counter.count(0, 1)
	}
}

// Succeed implements the engine's Sink. Engine's thread.
func (e *sink) Succeed(done []*engine.Submission, c *engine.Completion) {
	ep := (*endpoint)(e)
	ep.shared.give(len(done))
	if ep.cq != nil {
		ep.cq.pushAll(ep, done, c)
	}
	if counter := ep.cntr[direction(c.Flags)]; counter != nil {
		counter.succeeded(len(done), c.Length)
	}
}

// answer ends a call, and frees its place in the completion queue. Engine's thread.
func (ep *endpoint) answer(s *engine.Submission, c *engine.Completion, later *engine.Later) {
	if ep.cq != nil {
		ep.cq.reserved.Add(-1)
	}
	engine.Contexts{}.Complete(s, c, later)
}

// Follow implements the engine's Sink. Engine's thread.
func (e *sink) Follow(_ *engine.Submission, done []engine.Follower, c *engine.Completion) {
	ep := (*endpoint)(e)
	ep.shared.give(len(done))
	if ep.cq != nil {
		ep.cq.pushRun(ep, done, c)
	}
	if counter := ep.cntr[direction(c.Flags)]; counter != nil {
		counter.succeeded(len(done), c.Length)
	}
}

// Flush implements the engine's Sink. Engine's thread.
func (e *sink) Flush() {
	if e.cq != nil {
		e.cq.show()
	}
}

// errorFor describes a failure.
func (ep *endpoint) errorFor(s *engine.Submission, c *engine.Completion, later *engine.Later) *OpError {
	e := errorOf(resultOf(s, c, later), calls.NameOf(s), ep.peerName(Address(c.Cookie))).by(ep, s)
	switch {
	case c.Reason == session.Cancelled: // only what was deferred is cancelled here
		e.Cause = ErrCancelled
	case c.Status == wire.StatusOutOfBounds && s.Verb.TaggedAtomic():
		e.Cause = errBeyondReceive
	case c.Status == wire.StatusBadCount && s.Verb.TaggedAtomic():
		e.Cause = errBeyondFrame
	case c.Status == wire.StatusNoKey && s.Incarnation == 0:
		e.Cause = fmt.Errorf("%w: look the region up by its name (Endpoint.Lookup)", e.Cause)
	case c.Status == wire.StatusNoAccess:
		e.Cause = fmt.Errorf("%w: have its owner grant it (mr.Options.Access), and use its authorization key if it "+
			"has one (EndpointAttr.AuthKey)", e.Cause)
	case c.Status == wire.StatusOutOfBounds:
		e.Cause = fmt.Errorf("%w: want Offset and elements within the Base and the Size that Endpoint.Lookup finds",
			e.Cause)
	case c.Status == wire.StatusMisaligned && s.Verb.Atomic():
		e.Cause = fmt.Errorf("%w: want a multiple of %d", e.Cause, atomic.Datatype(s.Datatype).Align())
	}
	return e
}

// peerName returns the text form of the address that an operation went to.
func (ep *endpoint) peerName(a Address) string {
	if ep.conn != nil {
		return ep.conn.peer()
	}
	peer, _ := ep.av.lookup(a)
	return peer.addr.String()
}

// The directions of operations, as counters distinguish them.
const (
	reads    = iota // reads, fetch and compare
	writes          // writes, and base
	sends           // messages
	receives        // receives; no operation of the engine's
	directions
)

// direction returns the direction of a completion's flags.
func direction(flags uint8) int {
	switch {
	case flags&engine.CompletedWrite != 0:
		return writes
	case flags&engine.CompletedSend != 0:
		return sends
	}
	return reads
}

// completionFlags are the flags of the public completion by those of the engine.
var completionFlags = [...]CompletionFlags{
	0: CompletionAtomic | CompletionRead, engine.CompletedRead: CompletionAtomic | CompletionRead,
	engine.CompletedWrite:                            CompletionAtomic | CompletionWrite,
	engine.CompletedTransfer | engine.CompletedRead:  CompletionRMA | CompletionRead,
	engine.CompletedTransfer | engine.CompletedWrite: CompletionRMA | CompletionWrite,
	engine.CompletedTagged | engine.CompletedRead:    CompletionAtomic | CompletionRead | CompletionTagged,
	engine.CompletedTagged | engine.CompletedWrite:   CompletionAtomic | CompletionWrite | CompletionTagged,
	engine.CompletedSend:                             CompletionMsg | CompletionSend,
	engine.CompletedSend | engine.CompletedTagged:    CompletionTagged | CompletionSend,
}
