// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// read posts a read of n words of the target.
func (c *cable) read(p *Peer, n int) *outcomes {
	r := &outcomes{}
	op := c.nodes[0].ring.Claim()
	op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), r, 1, 0, uint32(n)
	op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbFetch, wire.OpRead, uint8(atomic.Uint64), 0
	op.Result = make([]byte, 8*n)
	op.SetOperands(nil, nil)
	op.Publish()
	return r
}

// A request is as long as its answer if the target wants that, and the answer is much
// longer than what is asked.
func TestPadding(t *testing.T) {
	for _, wants := range []bool{false, true} {
		c := newCable(t, session.Config{Features: wire.FeaturePadding})
		for _, e := range c.nodes[1].eng {
			e.cfg.Padding = func() bool { return wants }
		}
		p := c.peer(ethernet())
		for _, n := range []int{1, 10, 100} {
			c.seen = [2][][]byte{}
			if res := c.done(c.read(p, n)); res.Outcome != Success {
				t.Fatalf("%+v", res)
			}
			asked, answered := c.seen[1][len(c.seen[1])-1], c.seen[0][len(c.seen[0])-1]
			if padded := len(asked) >= len(answered); padded != (wants && n == 100 || n == 1) {
				t.Errorf("wanted %t: a request of %d bytes for an answer of %d", wants, len(asked), len(answered))
			}
		}
		if n := c.nodes[1].counted(Invalid); n != 0 {
			t.Errorf("%d frames were invalid", n)
		}
	}
}

// A padded request in a session without the feature is refused.
func TestPaddingWithoutFeature(t *testing.T) {
	_, _, _, at := riding(t, 0)
	at.receive(&wire.Header{Type: wire.Request, Ops: 1, Flags: wire.FlagPadded}, nil) // to run it would panic
	if at.e.count[Invalid] != 1 {
		t.Errorf("%d invalid frames", at.e.count[Invalid])
	}
}
