// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// renounced is an operation by a name that was closed before the engine had seen it.
type renounced struct{ c *client }

// renounce posts an operation by a name, closes the name, and opens so many others that
// one of them gets its place: the operation must not reach that one.
func (c *client) renounce() {
	w := c.n.w
	e := c.ring.Claim()
	if e == nil {
		return
	}
	former, heirs := c.wants[0], c.wants[len(c.wants)-1]
	name := c.open(former)
	e.Peer, e.Context, e.Key, e.Offset, e.Count = name.ID(), renounced{c}, heirs.target.regions[sumRegion].key(), 0, 1
	e.Verb, e.Opcode, e.Datatype, e.Flags = wire.VerbAtomic, uint8(atomic.Sum), uint8(w.typeOf(sumRegion, 0)), 0
	e.SetOperands(encode(w.typeOf(sumRegion, 0), 1), nil)
	e.Publish()
	c.outstanding++
	w.pending++
	w.count(renouncements)
	if w.dice.chance(0.5) {
		c.eng().Collect(c.ring)
	}
	name.Close()
	// A place is given out again when more than half of them are free.
	var others []*engine.Peer
	for range len(c.peers) + 2 {
		others = append(others, c.open(former))
	}
	for _, p := range others {
		p.Close()
	}
	heir := c.open(heirs)
	w.trace.event("%v: peer %#x is closed, and %#x opened", c.n, name.ID(), heir.ID())
	life := c.n.life
	w.at(w.now+millisecond, func() {
		if c.n.life == life {
			heir.Close()
		}
	})
	c.n.wake(w.now)
}

// open gives a destination another name.
func (c *client) open(d destination) *engine.Peer {
	p, err := c.origin.NewPeer(c.n.linkTo(d.target), 0, d.endpoint)
	if err != nil {
		panic(err) // its link is one of the plan's kind, and there are few peers
	}
	return p
}

// Complete implements engine.Completer.
func (r renounced) Complete(_ *engine.Submission, c *engine.Completion, _ *engine.Later) {
	w := r.c.n.w
	r.c.outstanding--
	w.pending--
	if c.Outcome != engine.NotExecuted || c.Reason != session.ClosedHere {
		w.fail("%v: an operation by a peer that had been closed: fate %d, status %v, reason %v, want not executed, %v",
			r.c.n, c.Outcome, c.Status, c.Reason, session.ClosedHere)
	}
}
