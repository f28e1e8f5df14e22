// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// Extend takes an operation that continues the run in the frame, and nothing else.
func TestExtend(t *testing.T) {
	type operation struct {
		Word
		Follower
	}
	next := func(p *Peer) *operation {
		w := &operation{Word{Peer: p.ID(), Operand: 1}, Follower{&outcomes{}, new([8]byte), 64}}
		w.Of(wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64))
		w.In(1, 0)
		return w
	}
	for name, test := range map[string]struct {
		change func(c *cable, p, q *Peer, w *operation)
		taken  bool
	}{
		"the next one":    {func(*cable, *Peer, *Peer, *operation) {}, true},
		"another name":    {func(_ *cable, _, q *Peer, w *operation) { w.Peer = q.ID() }, false},
		"another operand": {func(_ *cable, _, _ *Peer, w *operation) { w.Operand = 2 }, false},
		"another operation": {func(_ *cable, _, _ *Peer, w *operation) {
			w.Of(wire.VerbFetch, uint8(atomic.Diff), uint8(atomic.Uint64))
		}, false},
		"another datatype":    {func(_ *cable, _, _ *Peer, w *operation) { w.Of(wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Int64)) }, false},
		"another region":      {func(_ *cable, _, _ *Peer, w *operation) { w.In(2, 0) }, false},
		"another incarnation": {func(_ *cable, _, _ *Peer, w *operation) { w.In(1, 7) }, false},
		"a far offset":        {func(_ *cable, _, _ *Peer, w *operation) { w.Offset = 1 << 32 }, false},
		"a closed peer":       {func(_ *cable, p, _ *Peer, _ *operation) { p.Close() }, false},
		"another cookie":      {func(_ *cable, _, _ *Peer, w *operation) { w.Cookie = 1 }, false},
		"no result":           {func(_ *cable, _, _ *Peer, w *operation) { w.Result = nil }, false},
		"one is published":    {func(c *cable, p, _ *Peer, _ *operation) { c.submit(p, false, func(*Submission) {}) }, false},
		"one is in the queue": {func(c *cable, p, _ *Peer, _ *operation) {
			c.submit(p, true, func(s *Submission) { s.SetExtents([]mr.Extent{{Key: 1, Count: 1}}) })
		}, false},
		"the ring is removed": {func(c *cable, _, _ *Peer, _ *operation) { c.nodes[0].eng[0].RemoveRing(c.nodes[0].ring) }, false},
		"all are in flight": {func(c *cable, p, _ *Peer, _ *operation) {
			for c.nodes[0].ring.room() {
				c.add(p, 0)
			}
		}, false},
		"the frame is gone": {func(c *cable, _, _ *Peer, _ *operation) { c.nodes[0].eng[0].Step() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCable(t, session.Config{})
			q, p := c.peer(ethernet()), c.peer(ethernet())
			c.write(p, 9, 1)
			for range 3 { // the second one makes a run
				c.add(p, 0)
			}
			if n := p.staged(); n != 3 {
				t.Fatalf("%d operations are in the frame, want 3", n)
			}
			w := next(p)
			test.change(c, p, q, w)
			before := p.staged()
			if taken := c.nodes[0].eng[0].Extend(c.nodes[0].ring, &w.Word, w.Follower); taken != test.taken {
				t.Errorf("taken: %v, want %v", taken, test.taken)
			}
			if n := p.staged() - before; n > 0 != test.taken {
				t.Errorf("the frame has grown by %d operations", n)
			}
		})
	}
}
