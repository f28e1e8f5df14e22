// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/session"
)

// Cancel completes the operation of the peer whose completion goes to done at once,
// with what is known of it: it never ran and never will if nothing of it has left, and
// otherwise its outcome is unknown and may become known later, as after a partition.
// Its memory is the caller's again. It returns false when there is no such operation
// among those collected. Engine's thread only.
func (p *Peer) Cancel(done Completer) bool {
	r := p.r
	match := func(op *Op) bool { return op.Done == done }
	if i := slices.IndexFunc(r.watches, match); i >= 0 {
		r.unwatch(Result{Fate: NotExecuted, Reason: session.Cancelled}, match)
		return true
	}
	op := r.withdraw(match)
	for _, c := range []*conn{r.limbo, r.conn} {
		if c != nil {
			if flying := c.letGo(match); flying != nil {
				op = flying
			}
		}
	}
	if op == nil {
		return false
	}
	op.fail(Result{Fate: NotExecuted, Reason: session.Cancelled})
	op.finish()
	return true
}

// withdraw takes the operation that match picks out of the queue and returns it, or
// nil.
func (r *remote) withdraw(match func(op *Op) bool) *Op {
	for before, op := (*Op)(nil), r.head; op != nil; before, op = op, op.next {
		if !match(op) {
			continue
		}
		if before == nil {
			r.head = op.next
		} else {
			before.next = op.next
		}
		if r.tail == op {
			r.tail = before
		}
		op.next = nil
		return op
	}
	return nil
}

// letGo puts a stand-in into the frames in place of the operation that match picks, and
// returns that, whose outcome is unknown. It returns nil when no frame carries it.
func (c *conn) letGo(match func(op *Op) bool) (op *Op) {
	var in *Op
	for _, segs := range c.frames {
		for i := range segs {
			s := &segs[i]
			if !match(s.op) {
				continue
			}
			if in == nil {
				op, in = s.op, standIn(s.op)
			}
			s.op = in
			in.pending++
			op.pending--
		}
	}
	if op != nil {
		op.fail(Result{Fate: Unknown, Reason: session.Cancelled, Later: in.Done.(*Later)})
	}
	return op
}
