// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"bytes"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// Outcome is the end of an operation, which is learnt after its caller was told that the
// outcome is unknown. It is learnt in one or two steps: by the completion of an operation
// whose caller has left, and by what the target tells after a partition.
type Outcome struct {
	done   chan struct{} // closed when result and data are set
	result engine.Result
	data   []byte // the operation's result, when it ran and has one
}

func newOutcome() *Outcome { return &Outcome{done: make(chan struct{})} }

// OutcomeOf returns the outcome of a completed operation that may become known later, or
// nil when the outcome is known already, or never will be.
func OutcomeOf(r engine.Result) *Outcome {
	if r.Later == nil {
		return nil
	}
	o := newOutcome()
	o.settle(r, nil)
	return o
}

// settle sets the completion. data is copied, since its buffer is released to the caller.
func (o *Outcome) settle(r engine.Result, data []byte) {
	o.result, o.data = r, bytes.Clone(data)
	close(o.done)
}

// Known returns the outcome if it is final, and otherwise a channel to wait for. The
// outcome of an operation that was abandoned, and then met a partition, takes several
// steps.
func (o *Outcome) Known() (r engine.Result, data []byte, wait <-chan struct{}) {
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
