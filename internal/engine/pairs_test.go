// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Two queues that get the same hello at the same time do not both begin a session: the
// one that the pair forgets could execute something late.
func TestPairHasOneOwner(t *testing.T) {
	c := newCable(t, session.Config{})
	a, b := c.nodes[1].eng[0], c.nodes[1].eng[1]
	m := wire.HelloMsg{Nonce: 1, Origin: 7, Serial: 1, Session: 1, MaxFrame: 1500, Window: 64}
	p, _ := a.pairs.own(a, &m)
	if _, owner := b.pairs.own(b, &m); owner != a {
		t.Error("two queues have one pair")
	}
	a.pairs.settle(p, a.now)
	if _, owner := b.pairs.own(b, &m); owner != b {
		t.Error("an idle pair cannot move to another queue")
	}
}

// A stranger that makes pairs as fast as it can keeps no other initiator out, and memory
// stays bounded.
func TestPairsInAFlood(t *testing.T) {
	c := newCable(t, session.Config{})
	made := 0
	flood := func(n int) {
		for range n {
			c.stranger(made)
			made++
		}
	}
	flood(mostIdle + 8192)
	c.pass = func(to int, packet []byte) bool {
		if h, _ := headerOf(packet); to == 1 && h.Type == wire.Hello {
			flood(1)
		}
		return true
	}
	c.write(c.peer(ethernet()), 0, 1)
	if n := len(c.nodes[1].eng[0].pairs.all); n > mostIdle+4096 {
		t.Errorf("%d pairs are remembered, want at most %d idle ones", n, mostIdle)
	}
}
