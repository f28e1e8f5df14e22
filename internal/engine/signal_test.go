// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// writeSignal has n bytes written from word 2 on, and 1 added to word 0 as the signal.
func (c *cable) writeSignal(p *Peer, n int, incarnation uint32) *outcomes {
	r := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Flags, op.Result = p.ID(), r, 1, 16, 0, nil
	op.Transfer(wire.VerbSignal, uint32(n))
	op.Incarnation = incarnation
	op.SetOperands(bytes.Repeat([]byte{1}, n), nil)
	op.SetSignal(&wire.Signal{Key: 1, Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Operand: 1,
		Incarnation: incarnation})
	op.Publish()
	return r
}

// Of a write that takes several frames the first of which is lost, the signal does not
// come before that one, in a session with an order and without, and whether
// the registrations are named or not; and it comes once, though all frames come again.
func TestSignalBehindLostFrame(t *testing.T) {
	for _, x := range []struct {
		name             string
		unordered, named bool
	}{{"named", false, true}, {"not named", false, false}, {"unordered", true, true}} {
		t.Run(x.name, func(t *testing.T) {
			c := newCable(t, session.Config{GiveUp: 10 * time.Second,
				Features: wire.FeatureUnordered | wire.FeatureMemory | wire.FeatureSignals})
			c.nodes[0].eng[0].origin.unordered = x.unordered
			p := c.peer(ethernet())
			c.write(p, 1, 1)
			psn := session.FirstPSN(p.r.conn.ini.Identity().Epoch) + 1
			lose := true
			c.pass = func(to int, packet []byte) bool {
				h, ok := headerOf(packet)
				return !lose || to != 1 || !ok || h.Type != wire.Request || h.PSN != psn
			}
			incarnation := uint32(0)
			if x.named {
				incarnation = c.nodes[1].region.Incarnation()
			}
			r := c.writeSignal(p, 4000, incarnation)
			for range 12 {
				c.step()
			}
			if c.word(0) != 0 || c.word(2) != 0 {
				t.Errorf("the signal is %d and the first word %#x, though the first frame is lost", c.word(0), c.word(2))
			}
			lose = false
			if got := c.done(r); got != (Result{}) {
				t.Errorf("%+v", got)
			}
			c.idle(10 * time.Millisecond)
			for _, packet := range slices.Clone(c.seen[1]) {
				c.deliver(1, packet)
				c.step()
			}
			if c.word(0) != 1 || c.word(2) != 0x0101010101010101 {
				t.Errorf("in the end the signal is %d and the first word %#x", c.word(0), c.word(2))
			}
		})
	}
}

// A target that does not know signals gets none.
func TestSignalWithOldNode(t *testing.T) {
	c := newCable(t, session.Config{Features: wire.FeatureMemory})
	p := c.peer(ethernet())
	c.write(p, 1, 1)
	if r := c.done(c.writeSignal(p, 8, 0)); r != (Result{Outcome: NotExecuted, Status: wire.StatusUnsupported}) {
		t.Errorf("%+v", r)
	}
	if c.word(0) != 0 || c.word(2) != 0 {
		t.Error("something has changed")
	}
}
