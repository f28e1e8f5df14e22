// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"
)

// Senders die in the middle of messages, for the rest of which there was neither room nor
// a buffer: no message keeps its receive for longer than it should.
func TestStalls(t *testing.T) {
	for seed := range uint64(20) {
		d := newDice(seed)
		p := drawPlan(d, Messages)
		p.story, p.incidents, p.rates, p.certain = nil, incidents{crashes: 40}, rates{}, false
		p.nodes, p.clients, p.ops, p.end = 4, 3, 80, 30*second
		p.burst, p.most, p.letters, p.behind, p.mtu = 8, 40, 0.9, 0.5, 256
		p.think = p.end / int64(p.ops) * int64(p.burst) / 2
		p.buffers, p.session.Window, p.session.GiveUp = 1, 8, 200*time.Millisecond
		w := newWorld(d, p, nil)
		if w.run(); w.failure != nil {
			t.Fatalf("seed %d: %v", seed, w.failure)
		}
	}
}
