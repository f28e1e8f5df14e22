// SPDX-License-Identifier: Apache-2.0

package calls

import "github.com/xdpfab/xdpfab/internal/engine"

// Claimed is a submission to fill in; Poster.Hand must follow.
type Claimed struct {
	*engine.Submission
	Way Way
}

// Way is the way of a submission to the engine.
type Way uint8

const (
	Queued Way = iota // through the ring
	Direct            // the caller has the turn
)

// Poster is the endpoint that posts the operations of calls.
type Poster interface {
	// Claim returns a submission to fill in.
	Claim(cookie uint64) (Claimed, error)
	// Hand gives it to the engine.
	Hand(Claimed)
	// Failed returns the error of an operation that failed.
	Failed(s *engine.Submission, c *engine.Completion, later *engine.Later, peer string) error
	// Stale reports whether it is the error of an operation that was sent in a session
	// which the peer's process does not know: another one had begun it, or it is over.
	Stale(err error) bool
	// Left returns the error of a call whose context ended with the cause, from that
	// of the operation that was abandoned. An operation without effect counts as not
	// executed.
	Left(err, cause error, effect bool) error
	// Interrupted returns the error of an operation on a peer whose outcome is still to
	// come or that, if o is nil, was not executed.
	Interrupted(op, peer string, cause error, o *Outcome) error
}
