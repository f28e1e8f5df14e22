// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"bytes"
	"context"
	"errors"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// outcome is the end of an operation, which is learnt after its caller was told that the
// outcome is unknown. It is learnt in one or two steps: by the completion of an operation
// whose caller has left, and by what the target tells after a partition.
type outcome struct {
	done   chan struct{} // closed when result and data are set
	result engine.Result
	data   []byte // the operation's result, when it ran and has one
}

func newOutcome() *outcome { return &outcome{done: make(chan struct{})} }

// outcomeOf returns the outcome of a completed operation that may become known later, or
// nil when the outcome is known already, or never will be.
func outcomeOf(r engine.Result) *outcome {
	if r.Later == nil {
		return nil
	}
	o := newOutcome()
	o.settle(r, nil)
	return o
}

// settle sets the completion. data is copied, since its buffer is released to the caller.
func (o *outcome) settle(r engine.Result, data []byte) {
	o.result, o.data = r, bytes.Clone(data)
	close(o.done)
}

// known returns the outcome if it will not change any more, and otherwise a channel to
// wait for. An operation that was abandoned, and then met a partition, takes several
// steps.
func (o *outcome) known() (r engine.Result, data []byte, wait <-chan struct{}) {
	select {
	case <-o.done:
	default:
		return r, nil, o.done
	}
	r, data = o.result, o.data
	for r.Later != nil {
		select {
		case <-r.Later.Done():
			r, data = r.Later.Outcome()
		default:
			return r, nil, r.Later.Done()
		}
	}
	return r, data, nil
}

// Open reports whether the outcome of the operation may still become known, so that
// Resolve can say more than the error does.
func (e *OpError) Open() bool {
	if e.outcome == nil {
		return false
	}
	_, _, wait := e.outcome.known()
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
		r, data, wait := e.outcome.known()
		if wait != nil {
			if err := e.stepper.WaitFor(ctx, wait); err != nil && e.Open() {
				return false, nil, err
			}
			continue
		}
		switch r.Fate {
		case engine.Success:
			return true, data, nil
		case engine.NotExecuted:
			return false, nil, nil
		}
		return false, nil, errorOf(engine.Result{Fate: r.Fate, Status: r.Status, Reason: r.Reason}, e.Op, e.Peer)
	}
}
