// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// laterVerb is a verb that wire.FeatureMemory has room for, and that has no meaning yet.
const laterVerb wire.Verb = 0x13

// ask posts a record of an extension.
func (c *cable) ask(p *Peer, verb wire.Verb) *outcomes {
	r := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Flags = p.ID(), r, 1, 0, 0
	op.Result = nil
	if op.Transfer(verb, 1); !verb.Transfer() {
		op.Verb = verb
	}
	op.SetOperands(nil, nil)
	op.Publish()
	return r
}

// An old and a new node open a session that both understand. What the other has not
// announced is not sent to it: the operation fails at once, and the session goes on.
func TestOldAndNewNodes(t *testing.T) {
	for name, n := range map[string]struct {
		from, to wire.Features
		verb     wire.Verb
		status   wire.Status // of a record of the extension
	}{
		"old to old": {0, 0, wire.VerbRead, wire.StatusUnsupported},
		"old to new": {0, wire.FeatureMemory, wire.VerbRead, wire.StatusUnsupported},
		"new to old": {wire.FeatureMemory, 0, wire.VerbRead, wire.StatusUnsupported},
		"another":    {wire.FeatureMemory, wire.FeatureMessages, wire.VerbRead, wire.StatusUnsupported},
		"new to new": {wire.FeatureMemory | 1<<30, wire.FeatureMemory | 1<<29, wire.VerbRead, wire.StatusOK},
		// This version has no code for the record, which is what its failure says then.
		"to a newer one": {wire.FeatureMemory, wire.FeatureMemory, laterVerb, wire.StatusBadCount},
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
			want := NotExecuted
			if n.status == wire.StatusOK {
				want = Success
			}
			r := c.done(c.ask(p, n.verb))
			if r.Outcome != want || r.Status != n.status {
				t.Errorf("%v: fate %v, status %v; want %v, %v", n.verb, r.Outcome, r.Status, want, n.status)
			}
			for _, packet := range c.seen[1][before:] {
				frame, _ := wire.Strip(packet, worldMACs[1], false)
				if h, _, _ := wire.Parse(frame); h.Type == wire.Request && want != Success {
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

// A target that has restarted as a newer one grants more. An initiator that has not met
// it knows no better than to refuse what its session lacks, but asks the target then, and
// so has the next session, and its features, for the operations that follow. While it
// knows no better because there is nothing better, the session goes on.
func TestRefusalMeetsUpgrade(t *testing.T) {
	c := newCable(t, session.Config{})
	c.cfg.Features = wire.FeatureMemory
	c.nodes[0].boot()
	c.cfg.Features = 0
	c.nodes[1].boot()
	p := c.peer(ethernet())
	c.write(p, 0, 1)
	read := func(want Outcome) {
		t.Helper()
		if r := c.done(c.ask(p, wire.VerbRead)); r.Outcome != want {
			t.Fatalf("%+v, want fate %v", r, want)
		}
		c.idle(time.Second)
	}
	for range 3 {
		read(NotExecuted)
	}
	if n := c.nodes[0].counted(SessionsOpened); n != 1 {
		t.Errorf("%d sessions with a target that has nothing new, want 1", n)
	}
	c.cfg.Features = wire.FeatureMemory
	c.nodes[1].boot()
	read(NotExecuted)
	read(Success)
	if n := c.nodes[0].counted(SessionsOpened); n != 2 {
		t.Errorf("%d sessions, want 2", n)
	}
}
