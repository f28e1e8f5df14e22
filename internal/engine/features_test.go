// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// remoteRead is a verb of an extension that a node may have announced.
const remoteRead wire.Verb = 0x10

// ask posts a record of an extension.
func (c *cable) ask(p *Peer, verb wire.Verb) *outcomes {
	r := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Count, op.Flags = p.ID(), r, 1, 1, 0
	op.Verb, op.Result = verb, nil
	op.SetOperands(nil, nil)
	op.Publish()
	return r
}

// An old and a new node open a session that both understand. What the other has not
// announced is not sent to it: the operation fails at once, and the session goes on.
func TestOldAndNewNodes(t *testing.T) {
	for name, n := range map[string]struct {
		from, to wire.Features
		status   wire.Status // of a record of the extension
	}{
		"old to old": {0, 0, wire.StatusUnsupported},
		"old to new": {0, wire.FeatureMemory, wire.StatusUnsupported},
		"new to old": {wire.FeatureMemory, 0, wire.StatusUnsupported},
		"another":    {wire.FeatureMemory, wire.FeatureMessages, wire.StatusUnsupported},
		// This version has no code for the record, which is what its failure says then.
		"new to new": {wire.FeatureMemory | 1<<30, wire.FeatureMemory | 1<<29, wire.StatusBadCount},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			for i, f := range []wire.Features{n.from, n.to} {
				c.cfg.Features = f
				c.nodes[i].boot()
			}
			p := c.peer(ethernet())
			c.write(p, 0, 1)
			if got := p.r.conn.ini.Features(); got != n.from&n.to {
				t.Errorf("the session has features %#x, want %#x", got, n.from&n.to)
			}
			before := len(c.seen[1])
			r := c.done(c.ask(p, remoteRead))
			if r.Fate != NotExecuted || r.Status != n.status {
				t.Errorf("%v: fate %v, status %v; want %v, %v", remoteRead, r.Fate, r.Status, NotExecuted, n.status)
			}
			for _, packet := range c.seen[1][before:] {
				frame, _ := wire.Strip(packet, worldMACs[1])
				if h, _, _ := wire.Parse(frame); h.Type == wire.Request {
					t.Error("a request has left")
				}
			}
			c.write(p, 0, 2)
			if c.word(0) != 2 || c.nodes[1].counted(SessionsAccepted) != 1 {
				t.Errorf("word %d, %d sessions; want 2, 1", c.word(0), c.nodes[1].counted(SessionsAccepted))
			}
		})
	}
}
