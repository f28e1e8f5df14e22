// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
)

// worldFlush is a flush of one peer of a world, or of all.
type worldFlush struct {
	w       *world
	number  int
	before  []*worldOp // those that have to end before it
	results []Result
}

// Complete checks that all have ended that were posted before.
func (x *worldFlush) Complete(_ *Submission, c *Completion, _ *Later) {
	x.results = append(x.results, c.Result(nil))
	if c.Outcome != Success {
		return // it was cancelled, or nothing can be posted any more
	}
	for _, o := range x.before {
		if len(o.results) == 0 {
			x.w.t.Errorf("seed %d: flush %d completes before an operation that was posted before it: %+v", x.w.seed,
				x.number, *o)
			return
		}
	}
}

// flush posts a flush of one of the peers, or of all.
func (w *world) flush() {
	op := w.ring.Claim()
	if op == nil {
		return
	}
	x := &worldFlush{w: w, number: len(w.flushes)}
	op.Peer, op.Verb, op.Count, op.Context, op.Result = 0, VerbFlush, 0, x, nil
	peer := w.rng.IntN(len(w.peers) + 1)
	if peer < len(w.peers) {
		op.Peer = w.peers[peer].ID()
	}
	for _, o := range w.ops {
		if len(o.results) == 0 && (o.peer == peer || peer == len(w.peers)) {
			x.before = append(x.before, o)
		}
	}
	op.Publish()
	w.flushes = append(w.flushes, x)
}

// checkFlushes makes sure that each flush has completed once.
func (w *world) checkFlushes() {
	for i, x := range w.flushes {
		if len(x.results) != 1 {
			w.t.Errorf("seed %d: flush %d completed %d times", w.seed, i, len(x.results))
		} else if r := x.results[0]; r.Outcome != Success && r.Reason != session.Cancelled {
			w.t.Errorf("seed %d: flush %d: %+v", w.seed, i, r)
		}
	}
}

// flushOf posts a flush of a peer, or of all peers with nil.
func (c *cable) flushOf(p *Peer) *outcomes {
	r := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Verb, op.Count = 0, r, VerbFlush, 0
	if p != nil {
		op.Peer = p.ID()
	}
	op.Publish()
	return r
}

// A flush of a peer with which nothing is under way completes at once, and sends nothing;
// so does one of all peers. What is posted behind one that waits does not wait for it.
func TestFlush(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	for _, x := range []*Peer{p, nil} {
		if r := c.done(c.flushOf(x)); r != (Result{}) {
			t.Errorf("with nothing under way: %+v", r)
		}
	}
	if len(c.seen[1]) > 0 {
		t.Errorf("a flush sent %d packets", len(c.seen[1]))
	}
	c.write(p, 0, 1)
	c.pass = func(to int, _ []byte) bool { return to == 1 } // no answer arrives
	first := c.post(p, 1, 1)
	flushes := []*outcomes{c.flushOf(p), c.flushOf(nil)}
	for range 5 {
		c.step()
	}
	behind := c.post(p, 2, 1)
	for range 5 {
		c.step()
	}
	if c.word(2) != 1 {
		t.Error("an operation behind a flush waits for it")
	}
	if len(first.all)+len(flushes[0].all)+len(flushes[1].all) > 0 {
		t.Errorf("no answer has come, but %+v, %+v, %+v", first.all, flushes[0].all, flushes[1].all)
	}
	c.pass = nil
	for _, r := range append(flushes, first, behind) {
		if got := c.done(r); got != (Result{}) {
			t.Errorf("in the end: %+v", got)
		}
	}
}

// A flush waits for the verdict on operations whose session the target has forgotten, and
// for the end of those whose target is silent.
func TestFlushOfFailures(t *testing.T) {
	c := newCable(t, session.Config{GiveUp: time.Second})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	c.pass = func(int, []byte) bool { return false }
	lost := c.post(p, 1, 1)
	for range 20 {
		c.step()
	}
	later := c.post(p, 2, 1) // joins no frame that has left
	flush, all := c.flushOf(p), c.flushOf(nil)
	if r := c.done(flush); r != (Result{}) || len(lost.all) == 0 || len(later.all) == 0 {
		t.Errorf("silent: %+v, with %+v and %+v", r, lost.all, later.all)
	}
	if r := c.done(all); r != (Result{}) {
		t.Errorf("silent, all: %+v", r)
	}
	if lost.all[0].Outcome != Unknown {
		t.Errorf("silent: %+v, want an unknown outcome", lost.all[0])
	}
	c.pass = nil
	c.write(p, 3, 1)
	c.pass = func(to int, _ []byte) bool { return to == 1 }
	lost = c.post(p, 4, 1)
	for range 20 {
		c.step()
	}
	flush = c.flushOf(p)
	c.step()
	c.nodes[1].eng[0].Close() // it ends its sessions
	c.pass = nil
	if r := c.done(flush); r != (Result{}) || len(lost.all) == 0 {
		t.Errorf("closed: %+v, with %+v", r, lost.all)
	}
}

// A caller can stop waiting for a flush wherever it waits, and a peer can be closed.
func TestFlushCancelled(t *testing.T) {
	c := newCable(t, session.Config{})
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	c.pass = func(to int, _ []byte) bool { return to == 1 }
	lost := c.post(p, 1, 1)
	for range 20 {
		c.step()
	}
	one, all, waits := c.flushOf(p), c.flushOf(nil), c.flushOf(p)
	c.step()
	for _, r := range []*outcomes{one, all} {
		if !p.Cancel(r) {
			t.Error("not found")
		}
		if got := c.done(r); got != (Result{Outcome: NotExecuted, Reason: session.Cancelled}) {
			t.Errorf("cancelled: %+v", got)
		}
	}
	c.nodes[0].eng[0].Call(p.Close)
	if r := c.done(waits); r != (Result{}) || len(lost.all) == 0 {
		t.Errorf("peer closed: %+v, with %+v", r, lost.all)
	}
	if err := c.nodes[0].eng[0].Check(); err != nil {
		t.Error(err)
	}
}
