// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// tape keeps what a tap shows.
type tape struct{ received, sent [][]byte }

func (t *tape) show(packet []byte, sent bool) {
	if sent {
		t.sent = append(t.sent, bytes.Clone(packet))
	} else {
		t.received = append(t.received, bytes.Clone(packet))
	}
}

func same(a, b [][]byte) bool {
	for len(a) > 0 && len(b) > 0 && bytes.Equal(a[0], b[0]) {
		a, b = a[1:], b[1:]
	}
	return len(a)+len(b) == 0
}

// A tap sees every packet of its engine, as it is on the wire, in both directions, and
// nothing once it is taken away. A packet from outside of the group was received, unless
// somebody passed it on.
func TestTapSeesWhatCrosses(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	var a, b tape
	bn.a.Tap(a.show)
	bn.b.Tap(b.show)
	for n := range 300 {
		bn.fetchAdd(p, &r, 1, 0, 1, nil)
		bn.until(func() bool { return r.n > n })
	}
	bn.a.Tap(nil)
	bn.b.Tap(nil)
	if len(a.sent) != int(bn.a.port.Sent) || !same(a.sent, b.received) || !same(b.sent, a.received) {
		t.Errorf("A: %d sent (%d by its port), %d received; B: %d sent, %d received", len(a.sent), bn.a.port.Sent,
			len(a.received), len(b.sent), len(b.received))
	}
	for _, x := range a.sent {
		if _, from, reason := wire.Decap(x); reason != wire.ReasonOK || from.Remote != macA || from.Local != macB {
			t.Fatalf("a packet that was shown: %v, %+v", reason, from)
		}
	}
	seen, n := len(a.sent), r.n
	bn.fetchAdd(p, &r, 1, 0, 1, nil)
	bn.until(func() bool { return r.n > n })
	if len(a.sent) != seen {
		t.Error("a tap that was taken away sees packets")
	}
	bn.a.Tap(a.show)
	a.received = nil
	bn.a.Deliver(b.sent[0], false)
	bn.a.Deliver(b.sent[1], true)
	bn.a.Step()
	if !same(a.received, b.sent[:1]) {
		t.Errorf("%d packets of others were seen, want the one that was not passed on", len(a.received))
	}
}

// A tap costs the engine no memory.
func TestTapDoesNotAllocate(t *testing.T) {
	bn := newBench(t, 1, session.Config{})
	bn.region(1, 64, mr.RemoteRead|mr.RemoteWrite)
	p := bn.peer(0)
	var r results
	var bytesSeen int
	bn.b.Tap(func(packet []byte, _ bool) { bytesSeen += len(packet) })
	round := func() {
		n := r.n
		bn.fetchAdd(p, &r, 1, 0, 1, nil)
		for r.n == n {
			bn.step()
		}
	}
	for range 200 { // fill the pools
		round()
	}
	if n := testing.AllocsPerRun(200, round); n != 0 || bytesSeen == 0 {
		t.Errorf("%v allocations for an operation, %d bytes seen; want none, and some", n, bytesSeen)
	}
}
