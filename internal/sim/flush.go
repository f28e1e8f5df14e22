// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// flushEvery is how many operations of a pair there are for each flush.
const flushEvery = 24

// flush is a flush of one name of a pair, or of all peers of a client.
type flush struct {
	w      *world
	before []*op // those that have to end before it
	ended  bool
}

// flush posts a flush behind an operation now and then, of its peer or of all.
func (c *client) flush(last *op) {
	if last.seq%flushEvery != flushEvery-1 {
		return
	}
	s := c.ring.Claim()
	if s == nil {
		return
	}
	x := &flush{w: c.n.w}
	s.Verb, s.Count, s.Context, s.Result, s.Peer = engine.VerbFlush, 0, x, nil, 0
	if last.value%2 == 0 {
		s.Peer = last.peer.eng.ID()
	}
	for _, o := range c.ops() {
		if !o.done && (s.Peer == 0 || o.peer == last.peer) {
			x.before = append(x.before, o)
		}
	}
	s.Publish()
}

// Complete implements engine.Completer.
func (x *flush) Complete(_ *engine.Submission, c *engine.Completion, _ *engine.Later) {
	if x.ended {
		x.w.fail("a flush completed twice")
	}
	x.ended = true
	for _, o := range x.before {
		if c.Outcome != engine.Success {
			break
		}
		if !o.done {
			x.w.fail("a flush completed before %v, which was posted before it", o)
		} else if o.succeeded() && !o.applied() {
			x.w.fail("a flush completed before %v, which was posted before it, was in memory", o)
		}
	}
	x.w.count(flushed)
}

// applied reports whether what a remote write wrote, and its signal, are in the memory of
// its target, as far as later ones and the loss of that memory let it be seen.
func (o *op) applied() bool {
	t, w := o.peer.target, o.peer.c.n.w
	if o.verb != wire.VerbWrite && o.verb != wire.VerbSignal || t.regions[copyRegion].wiped(o.call, w.now) {
		return true
	}
	for i := range o.count {
		v := t.regions[copyRegion].word(o.first + i).lo
		if from := w.writers[v>>copyBits]; from == nil || from != o && from.before(o) {
			return false
		}
	}
	fences := t.regions[fenceRegion]
	return o.signal == 0 || fences.wiped(o.call, w.now) || fences.word(o.signal-1).lo != 0
}
