// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"

	"github.com/xdpfab/xdpfab/internal/session"
)

// Later is where the outcome of an operation that was reported as unknown will be
// told, should it become known: when a partition heals after the give-up time, the
// target can say from its cache what ran.
type Later struct {
	done   chan struct{}
	result Result
	data   []byte // what the operation returned, when it ran and returns something
}

// Done is closed when the outcome is known, or known never to be.
func (l *Later) Done() <-chan struct{} { return l.done }

// Outcome returns the final result, once Done is closed, and what the operation
// returned. A fate of Unknown is final.
func (l *Later) Outcome() (Result, []byte) { return l.result, l.data }

// Complete implements Completer.
func (l *Later) Complete(op *Op, r Result) {
	l.result, l.data = r, op.Result
	close(l.done)
}

// standIn returns an operation that takes the place of op in a suspended session:
// with the results that are there, and the failure that there is. An array of which
// a part was never sent cannot succeed any more.
func standIn(op *Op) *Op {
	in := &Op{
		Peer: op.Peer, Done: &Later{done: make(chan struct{})},
		Verb: op.Verb, Opcode: op.Opcode, Datatype: op.Datatype, Count: op.Count,
		Result: bytes.Clone(op.Result),
		sent:   op.elements(), ran: op.ran, failed: op.failed, bad: op.bad,
	}
	if op.sent < op.elements() {
		in.fail(Result{Fate: NotExecuted, Reason: session.GaveUp})
	}
	return in
}
