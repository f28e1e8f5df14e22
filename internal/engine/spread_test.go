// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// spreads makes the second node spread its sessions, of which all frames arrive on one
// queue.
func spreads(t *testing.T, steer int) (c *cable, engines []*Engine) {
	c = newCable(t, session.Config{})
	c.steer = steer
	engines = c.nodes[1].eng
	engines[0].cfg.Spread = true
	NewGroup(engines)
	return c, engines
}

// Where all frames arrive on one queue, the sessions are each queue's in turn.
func TestSpread(t *testing.T) {
	for steer := range 2 {
		c, engines := spreads(t, steer)
		for endpoint := range uint16(4) {
			p, err := c.nodes[0].eng[0].NewPeer(ethernet(), 0, endpoint)
			if err != nil {
				t.Fatal(err)
			}
			for i := range uint64(50) {
				c.write(p, 3, i)
				if c.word(3) != i {
					t.Fatalf("word %d, want %d", c.word(3), i)
				}
			}
		}
		for q, e := range engines {
			if e.accepted != 2 {
				t.Errorf("frames on queue %d: queue %d has %d sessions, want 2", steer, q, e.accepted)
			}
		}
		if n := engines[steer].count[HandedOver]; n < 100 {
			t.Errorf("queue %d passed %d packets on, want all of two sessions", steer, n)
		}
	}
}

// A hello that gets lost on the way to the engine that has been chosen leaves nothing
// behind but an idle pair, and its repetition goes to the same engine.
func TestSpreadHelloGetsLost(t *testing.T) {
	_, engines := spreads(t, 0)
	a, b := engines[0], engines[1]
	first := wire.HelloMsg{Nonce: 1, Origin: 7, Serial: 1, Session: 1, MaxFrame: 1500, Window: 64}
	if _, owner := a.pairs.own(a, &first); owner != a {
		t.Fatal("the first pair is not the first engine's")
	}
	m := wire.HelloMsg{Nonce: 1, Origin: 8, Serial: 1, Session: 1, MaxFrame: 1500, Window: 64}
	for range 2 {
		if _, owner := a.pairs.own(a, &m); owner != b {
			t.Fatal("the second pair is not the second engine's")
		}
	}
	if n := a.pairs.idle.Len(); n != 1 {
		t.Errorf("%d pairs idle, want 1", n)
	}
	if p, owner := b.pairs.own(b, &m); owner != b || p.place != nil {
		t.Error("the engine that was chosen does not get the pair")
	}
}

// Passing packets on takes no memory, and packets that find no room are dropped.
func TestPassingDoesNotAllocate(t *testing.T) {
	_, engines := spreads(t, 0)
	a, b := engines[0], engines[1]
	packet := make([]byte, 60) // of no protocol that is known: it is counted, and forgotten
	pass := func() {
		for range burst {
			a.group.pass(a, packet, 1)
		}
		if n := b.takeInbox(); n != burst {
			t.Fatalf("%d packets arrived, want %d", n, burst)
		}
	}
	for range passing / burst {
		pass()
	}
	if n := testing.AllocsPerRun(100, pass); n != 0 {
		t.Errorf("%v allocations for %d packets, want none", n, burst)
	}
	for range passing + 10 {
		a.group.pass(a, packet, 1)
	}
	if n := b.takeInbox(); n != passing {
		t.Errorf("%d packets arrived, want the %d that there is room for", n, passing)
	}
}
