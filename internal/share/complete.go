// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
)

// The completions of a guest's operations, on their way back to it.

// write writes a completion, and frees the operation.
func (f *HostRing) write(o *op, c *engine.Completion) {
	if !o.moves {
		f.put(o, c)
	}
	f.done(o)
}

// put writes a completion.
func (f *HostRing) put(o *op, c *engine.Completion) {
	x := &f.segment.done[f.completed&uint64(len(f.ops)-1)]
	*x = *c
	x.Cookie, x.Data, x.Source = o.tag, 0, 0
	if o.peer != nil {
		x.Data = o.peer.Peer.Life()
	}
	byHost := f.ended && c.Reason == session.ClosedHere ||
		o.more && o.wait == replaced && c.Reason == session.Cancelled
	if byHost { // and not by the guest
		x.Reason = session.HostLost
	}
	f.completed++
	f.Counts.Completed++
}

// Complete implements engine.Sink.
func (f *HostRing) Complete(s *engine.Submission, c *engine.Completion, later *engine.Later) {
	o := s.Context.(*op)
	if len(s.Result) == len(o.value) && &s.Result[0] == &o.value[0] {
		o.show(c)
	}
	kept := later != nil && f.keeps(o)
	f.opEnded(o, kept)
	if kept {
		f.keep(o, c, later)
		return
	}
	f.write(o, c)
}

// show puts the value that the operation has found, if any, into its completion.
func (o *op) show(c *engine.Completion) {
	c.Inline = [engine.InlineResult]byte{}
	if c.Flags&engine.CompletedRead != 0 {
		copy(c.Inline[:], o.value[:])
	}
}

// succeed writes the completion of an operation on one word that succeeded, field by
// field into the ring: of its place for results only the beginning, which has the value.
func (f *HostRing) succeed(o *op, c *engine.Completion) {
	x := &f.segment.done[f.completed&uint64(len(f.ops)-1)]
	x.Cookie, x.Data, x.Length, x.Source = o.tag, o.peer.Peer.Life(), c.Length, 0
	x.Outcome, x.Status, x.Reason, x.Flags = c.Outcome, c.Status, c.Reason, c.Flags
	if c.Flags&engine.CompletedRead != 0 {
		*(*[8]byte)(x.Inline[:]) = o.value
	}
	f.completed++
	f.Counts.Completed++
	f.done(o)
}

// Succeed implements engine.Sink.
func (f *HostRing) Succeed(done []*engine.Submission, c *engine.Completion) {
	for _, s := range done {
		f.succeed(s.Context.(*op), c)
	}
}

// Follow implements engine.Sink.
func (f *HostRing) Follow(_ *engine.Submission, done []engine.Follower, c *engine.Completion) {
	for i := range done {
		f.succeed(done[i].Context.(*op), c)
	}
}

// Flush implements engine.Sink: it lets the guest see the completions. Take shows them
// once: a guest that always says that it sleeps costs one system call a round.
func (f *HostRing) Flush() {
	if f.taking {
		f.unshown = true
		return
	}
	h := f.segment.h
	h.completed.Swap(f.completed)
	if h.guestSleeps.Load() != 0 && h.guestSleeps.Swap(0) != 0 {
		f.doorbell.Ring()
	}
}
