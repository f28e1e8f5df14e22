// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"errors"
	"time"
)

// A call of an operation that waits at the target (wire.VerbWait) is over when the target
// has said how it ended, also if the caller's context has ended before: a caller that
// leaves knows whether the operation ran. It takes a round trip. If the target is silent,
// the caller leaves without an answer, as from any other call.

// patience is how long the caller stays for the answer.
const patience = time.Second

// limitOf returns how long an operation waits at the target, microseconds; 0 for ever.
func limitOf(ctx context.Context) uint64 {
	at, limited := ctx.Deadline()
	if !limited {
		return 0
	}
	return uint64(max(time.Until(at).Microseconds(), 1))
}

// outwait ends the wait for such an operation. stopped is why the caller stopped waiting,
// if it did: then the target is asked to end the operation. ended is false if no answer
// came, or the domain has ended.
func (p *Peer) outwait(ctx context.Context, c Call, w *Waiter, stopped error) (err error, ended bool) {
	if stopped != nil && !p.recall(ctx, w) {
		return nil, false
	}
	err = w.err
	if errors.Is(err, context.Canceled) {
		// the target's clock may have been faster than that of the context
		if _, limited := ctx.Deadline(); limited {
			<-ctx.Done()
		}
		if cause := context.Cause(ctx); cause != nil {
			err = p.Poster.Left(err, cause, true)
		}
	}
	copy(c.Result, w.result)
	w.recycle()
	return err, true
}

// recall has the target end the operation, and reports whether its end is known.
func (p *Peer) recall(ctx context.Context, w *Waiter) bool {
	p.Stepper.Call(func() {
		p.Stepper.Eng.Collect(p.Ring)
		if !p.Peer.Recall(w) {
			p.Ring.Withdraw(w)
		}
	})
	stay, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	return p.Stepper.Wait(stay, &w.Signal) == nil
}
