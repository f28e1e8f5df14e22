// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
)

// Later tells the outcome of an operation that was reported as unknown, should it become
// known: when a partition heals after the give-up time, the target can tell from its
// cache which operations ran.
type Later struct {
	done   chan struct{}
	result Result
	data   []byte // the operation's result, when it ran and has one
	then   func() // or nil; see Then
}

// Done is closed when the outcome is known, or can never become known.
func (l *Later) Done() <-chan struct{} { return l.done }

// Outcome returns, once Done is closed, how the operation ended, and its data. A outcome
// of Unknown is final.
func (l *Later) Outcome() (Result, []byte) { return l.result, l.data }

// Then has f called, on the engine's thread, when the outcome is known or never will be.
// Engine's thread only, and once.
func (l *Later) Then(f func()) {
	select {
	case <-l.done:
		f()
	default:
		l.then = f
	}
}

// settle tells the outcome.
func (l *Later) settle(f *flight, r Result) {
	if l.result, l.data = r, f.result(); f.Flags&FlagStream != 0 {
		l.data = f.Stream.results()
	}
	close(l.done)
	if l.then != nil {
		l.then()
	}
}

// standIn returns an operation that takes the place of f in a suspended session, with the
// results that arrived and the failure, if any. If a part of an array was never
// sent, the array can no longer succeed.
func standIn(f *flight) *flight {
	in := &flight{later: &Later{done: make(chan struct{})}, sent: f.elements(), noted: true, ran: f.ran,
		failed: f.failed, bad: f.bad}
	if in.Entry = f.Entry; f.Flags&FlagStream != 0 {
		in.SetStream(f.Stream.apart())
	} else {
		in.Result = f.whatCame()
	}
	in.Flags &^= FlagPieces
	in.leaving = true // nobody waits for it now
	if !f.packed() {
		in.fail(Result{Outcome: NotExecuted, Reason: session.GaveUp})
	}
	return in
}
