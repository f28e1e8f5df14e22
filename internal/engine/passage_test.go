// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Many endpoints of one node meet each other at once, which takes many times the packets
// that the rings between its engines have room for. A node of one queue loses none: the
// first hello is answered with a cookie, the second with the session.
func TestManyTalkToThemselves(t *testing.T) {
	const endpoints = 40
	for side, queues := range []string{"one queue", "two queues"} {
		t.Run(queues, func(t *testing.T) {
			c := newCable(t, session.Config{})
			n := c.nodes[side]
			var told outcomes
			for i := range endpoints {
				n.addToAll(n.eng[i%len(n.eng)], endpoints, &told)
			}
			const all = endpoints * endpoints
			for steps := 0; len(told.all) < all && steps < 100_000; steps++ {
				c.step()
			}
			if sum := binary.LittleEndian.Uint64(n.bytes); len(told.all) != all || sum != all {
				t.Errorf("%d operations have ended, and ran %d times: want %d", len(told.all), sum, all)
			}
			if hellos := n.counted(Hellos); len(n.eng) == 1 && hellos != 2*all {
				t.Errorf("%d hellos for %d sessions: want %d", hellos, all, 2*all)
			}
		})
	}
}

// addToAll has a new origin of an engine add 1 to a word by each endpoint of the node.
func (n *cableNode) addToAll(e *Engine, endpoints uint16, told *outcomes) {
	ring, err := NewRing(64, Contexts{})
	if err != nil {
		n.c.t.Fatal(err)
	}
	o := e.NewOrigin(0)
	e.AddRing(ring, o)
	self := wire.Link{Local: worldMACs[n.side], Remote: worldMACs[n.side]}
	for to := range endpoints {
		p, err := o.NewPeer(self, 0, to)
		if err != nil {
			n.c.t.Fatal(err)
		}
		op := ring.Claim()
		op.Peer, op.Context, op.Key, op.Offset, op.Count = p.ID(), told, 1, 0, 1
		op.Verb, op.Opcode, op.Datatype, op.Flags = wire.VerbAtomic, uint8(atomic.Sum), uint8(atomic.Uint64), 0
		op.SetOperands(binary.LittleEndian.AppendUint64(nil, 1), nil)
		op.Publish()
	}
}
