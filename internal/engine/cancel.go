// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/session"
)

// Cancel completes at once, with what is known of it, the operation of the peer that was
// posted with context. If no part of it has left, it never ran and never will; otherwise
// its outcome is unknown and may become known later, as after a partition. Its memory is
// released to the caller. Cancel returns false when there is no such operation among
// those collected. Engine's thread only.
func (p *Peer) Cancel(context any) bool {
	r := p.r
	match := func(f *flight) bool { return f.Context == context }
	if c := p.origin.e.viaHost; c != nil && c.letGo(match, session.Cancelled) {
		return true
	}
	if i := slices.IndexFunc(r.watches, match); i >= 0 {
		r.unwatch(Result{Outcome: NotExecuted, Reason: session.Cancelled}, match)
		return true
	}
	f := r.withdraw(match)
	for _, c := range []*conn{r.suspended, r.conn} {
		if c != nil {
			if flying := c.letGo(match); flying != nil {
				f = flying
			} else if waiting := c.letTicketGo(match); waiting != nil {
				f = waiting
			}
		}
	}
	if f == nil {
		f = p.origin.cancelFlush(match)
	}
	if f == nil {
		return false
	}
	f.fail(Result{Outcome: NotExecuted, Reason: session.Cancelled})
	f.finish()
	return true
}

// recall is [Peer.Recall] for an operation in the guest ring.
func (g *ringClient) recall(match func(f *flight) bool) bool {
	for tag := range g.parts {
		if f := g.parts[tag].f; f != nil && f.ring != nil && match(f) {
			g.leave(uint32(tag))
			return true
		}
	}
	return g.unpost(match, session.Cancelled)
}

func (g *ringClient) leave(tag uint32) {
	g.Leave(tag)
	g.posted = true
}

// Withdraw is Cancel for an operation that is still in its cell of the ring, since an
// entry before it has not been published: it never runs. Engine's thread only.
func (r *Ring) Withdraw(context any) bool {
	for ticket := r.head; ticket != r.tail.Load() && r.room(); ticket++ {
		c := &r.cells[ticket&r.mask]
		if c.seq.Load() != ticket+1 || c.Verb == 0 || c.Context != context {
			continue
		}
		f := r.begin()
		f.move(&c.Submission)
		c.Verb = 0 // as if it had been abandoned
		f.fail(Result{Outcome: NotExecuted, Reason: session.Cancelled})
		f.finish()
		return true
	}
	return false
}

// withdraw takes the operation for which match is true out of the queue and returns it,
// or nil.
func (r *remote) withdraw(match func(f *flight) bool) *flight {
	r.unstage()
	for before, f := (*flight)(nil), r.head; f != nil; before, f = f, f.next {
		if !match(f) {
			continue
		}
		if before == nil {
			r.head = f.next
		} else {
			before.next = f.next
		}
		if r.tail == f {
			r.tail = before
		}
		f.next, f.queued = nil, false
		r.abandoned(f)
		r.list() // what is behind it may have its parts
		return f
	}
	return nil
}

// letGo puts a stand-in into the frames in place of the operation for which match is
// true, and returns that operation, whose outcome is unknown. It returns nil when no
// frame carries such an operation.
func (c *conn) letGo(match func(f *flight) bool) (f *flight) {
	var in *flight
	for at := range c.expanded() {
		for i := range at.frags {
			s := &at.frags[i]
			if !match(s.f) {
				continue
			}
			if in == nil {
				f, in = s.f, standIn(s.f)
			}
			s.f = in
			in.pending++
			f.pending--
		}
	}
	if f != nil {
		f.fail(Result{Outcome: Unknown, Reason: session.Cancelled, Later: in.later})
	}
	return f
}
