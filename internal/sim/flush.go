// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/xdpfab/xdpfab/internal/engine"

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
		if !o.done && c.Outcome == engine.Success {
			x.w.fail("a flush completed before %v, which was posted before it", o)
		}
	}
	x.w.count(flushed)
}
