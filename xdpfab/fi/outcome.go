// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"context"
	"errors"

	"github.com/xdpfab/xdpfab/internal/engine"
)

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
