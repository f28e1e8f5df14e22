// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"bytes"
	"context"
	"errors"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// outcome is what becomes of an operation after its caller was told that the outcome
// is unknown. It comes in one or two steps: the completion of an operation whose
// caller has left, and what the engine learns after a partition.
type outcome struct {
	done   chan struct{} // closed when result and data are set
	result engine.Result
	data   []byte // what the operation returned, when it ran and returns something
}

func newOutcome() *outcome { return &outcome{done: make(chan struct{})} }

// outcomeOf returns where the outcome of a completed operation will be told, or nil
// when that is known already, or never will be.
func outcomeOf(r engine.Result) *outcome {
	if r.Later == nil {
		return nil
	}
	o := newOutcome()
	o.settle(r, nil)
	return o
}

// settle tells the completion. data is copied: the caller has its buffers back.
func (o *outcome) settle(r engine.Result, data []byte) {
	o.result, o.data = r, bytes.Clone(data)
	close(o.done)
}

// known returns the outcome if it will not change any more, and otherwise what to wait
// for. An operation that was let go, and then met a partition, takes several steps.
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

// Open reports whether it may still become known what became of the operation: that
// is, whether Resolve can say more than the error does.
func (e *OpError) Open() bool {
	if e.outcome == nil {
		return false
	}
	_, _, wait := e.outcome.known()
	return wait != nil
}

// Resolve waits until it is known what became of an operation whose outcome was
// unknown. That takes as long as the operation itself, when its context ended first;
// and when a partition outlasted the give-up time, until it heals: then the target can
// tell from its cache. ran says whether the operation took effect, and result is what
// it returned, if it returns something.
//
// If ctx ends first, its error is returned and Resolve may be called again. Any other
// error is final: it will never be known. Then the target has restarted
// (ErrPeerRestarted); or it was not heard of for a minute, another session to it was
// given up meanwhile, it had no room to remember, or of an array a part ran and the
// rest did not (ErrOutcomeUnknown).
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
