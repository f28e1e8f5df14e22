// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// openLoop offers operations on one word at a fixed rate, however the earlier ones
// fare.
type openLoop struct {
	t    testing.TB
	w    *world
	ring *engine.Ring
	peer *engine.Peer
	took []int64 // by each operation; ns
}

// offered is one of them.
type offered struct {
	l      *openLoop
	posted int64
	result [8]byte
}

// Complete implements engine.Completer.
func (o *offered) Complete(_ *engine.Submission, c *engine.Completion, _ *engine.Later) {
	if c.Outcome != engine.Success {
		o.l.t.Errorf("fate %d, reason %v", c.Outcome, c.Reason)
	}
	o.l.took = append(o.l.took, o.l.w.now-o.posted)
}

func (l *openLoop) post() {
	s := l.ring.Claim()
	if s == nil {
		l.t.Fatal("the ring is full: the load is not moderate")
	}
	o := &offered{l: l, posted: l.w.now}
	s.Peer, s.Context, s.Key, s.Offset, s.Count = l.peer.ID(), o, l.w.nodes[1].regions[arrayRegion].key(), 0, 1
	s.Verb, s.Opcode, s.Datatype, s.Flags, s.Result = wire.VerbFetch, uint8(atomic.Sum), uint8(atomic.Uint64), 0, o.result[:]
	s.SetOperands(repeat(1, 1), nil)
	s.Publish()
	l.w.nodes[0].wake(l.w.now)
}

// latencies returns how long operations took at a load, in ascending order, ns.
func latencies(t *testing.T, unordered bool, loss float64, every int64, ops int) []int64 {
	t.Helper()
	w := lab(plan{nodes: 2, delay: cableDelay, rates: rates{loss: loss}})
	l := &openLoop{t: t, w: w}
	var err error
	if l.ring, err = engine.NewRing(4096, engine.Contexts{}); err != nil {
		t.Fatal(err)
	}
	n := w.nodes[0]
	origin := n.eng.NewOrigin(0)
	if unordered {
		origin = n.eng.NewUnorderedOrigin(0)
	}
	n.eng.AddRing(l.ring, origin)
	if l.peer, err = origin.NewPeer(n.linkTo(w.nodes[1]), 0, 0); err != nil {
		t.Fatal(err)
	}
	for i := range ops {
		w.at(w.now+int64(i)*every, l.post)
	}
	w.until(w.now+int64(ops)*every+10*second, func() bool { return len(l.took) == ops || w.failure != nil })
	if w.failure != nil || len(l.took) != ops {
		t.Fatalf("%d of %d operations: %v", len(l.took), ops, w.failure)
	}
	slices.Sort(l.took)
	return l.took
}

// At a loss of 1 % in both directions two operations in a hundred meet it themselves.
// With order they hold up those behind them, and what is lost while they do adds to that;
// without order they hold up none. So it is the far end of the tail that differs most.
func TestTailWithoutOrder(t *testing.T) {
	t.Parallel()
	long(t)
	const ops, every = 40_000, 4 * microsecond // five operations a round trip
	with, without := latencies(t, false, 0.01, every, ops), latencies(t, true, 0.01, every, ops)
	for _, p := range []struct{ permille, most int64 }{{500, 100}, {950, 80}, {990, 80}, {999, 50}} {
		a, b := with[ops*p.permille/1000], without[ops*p.permille/1000]
		t.Logf("p%.1f: %.1f µs with order, %.1f µs without: %d %%", float64(p.permille)/10, float64(a)/1e3, float64(b)/1e3, 100*b/a)
		if 100*b > p.most*a {
			t.Errorf("p%.1f: %d ns without order, %d ns with it: want at most %d %%", float64(p.permille)/10, b, a, p.most)
		}
	}
}
