// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"runtime"
	"testing"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
)

// heap returns the bytes that are in use after collecting garbage.
func heap() int {
	runtime.GC()
	runtime.GC() // frees what finalizers have released
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// opener opens sessions and counts the outcomes.
type opener struct{ opened, refused int }

// Complete implements engine.Completer.
func (o *opener) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	r := c.Result(later)
	if r.Outcome == engine.Success {
		o.opened++
	} else {
		o.refused++
	}
}

// connect opens n sessions from one node to another, and waits for all outcomes.
func (o *opener) connect(t testing.TB, w *world, from, to *node, n int) {
	t.Helper()
	want := o.opened + o.refused + n
	rings := o.begin(t, w, from, to, n)
	w.until(w.now+5*second, func() bool { return o.opened+o.refused == want })
	if o.opened+o.refused != want {
		t.Fatalf("%d sessions opened, %d refused, of %d", o.opened, o.refused, n)
	}
	for _, ring := range rings {
		from.eng.RemoveRing(ring)
	}
}

// begin has n sessions opened from one node to another, by as many rings.
func (o *opener) begin(t testing.TB, w *world, from, to *node, n int) []*engine.Ring {
	t.Helper()
	rings := make([]*engine.Ring, n)
	for i := range rings {
		ring, err := engine.NewRing(2, engine.Contexts{})
		if err != nil {
			t.Fatal(err)
		}
		origin := from.eng.NewOrigin(0)
		from.eng.AddRing(ring, origin)
		p, err := origin.NewPeer(from.linkTo(to), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := ring.Claim()
		s.Peer, s.Context, s.Verb = p.ID(), o, engine.VerbConnect
		s.Publish()
		rings[i] = ring
	}
	from.wake(w.now)
	return rings
}

// accepts returns how many sessions a target with the engine's own limits accepts. After
// a second those that execute nothing would give their places to the others, which ask
// again.
func accepts(t testing.TB) int {
	t.Helper()
	w := star(2, scalePlan(), 1<<13, session.MaxWindow)
	var o opener
	o.begin(t, w, w.nodes[1], w.nodes[0], 5000)
	w.until(w.now+second/2, nil)
	if n := w.nodes[0].eng.Usage().Sessions; n != o.opened {
		t.Errorf("%d sessions opened, the target has %d", o.opened, n)
	}
	return o.opened
}

// sessionBytes measures the memory of the halves of a session, without frames:
// the difference between few and many of them.
func sessionBytes(t testing.TB) (initiator, target int) {
	const few, many = 512, 3072
	var both, half [2]int
	for i, n := range []int{few, many} {
		before := heap()
		w := star(1, scalePlan(), 1<<13, session.MaxWindow)
		new(opener).connect(t, w, w.nodes[1], w.nodes[0], n)
		if got := w.nodes[0].eng.Usage().Sessions; got != n {
			t.Fatalf("%d sessions, want %d", got, n)
		}
		w.heap = nil // events hold nothing but nodes; this one world is over
		both[i] = heap() - before
		w.nodes[1].crash()
		half[i] = heap() - before
		runtime.KeepAlive(w)
	}
	target = (half[1] - half[0]) / (many - few)
	return (both[1]-both[0])/(many-few) - target, target
}

// allToAll makes every node open a session to every other, and returns the memory
// of the sessions of one node: the bytes of all, less those of engines without
// sessions.
func allToAll(t testing.TB, nodes int) int {
	t.Helper()
	run := func(join bool) int {
		before := heap()
		w := mesh(nodes, scalePlan())
		var o opener
		for i := 0; join && i < nodes; i++ {
			for j := range nodes {
				if i != j {
					o.connect(t, w, w.nodes[i], w.nodes[j], 1)
				}
			}
		}
		if o.refused > 0 {
			t.Errorf("%d nodes: %d sessions refused", nodes, o.refused)
		}
		for _, n := range w.nodes {
			if got := n.eng.Usage().Sessions; join && got != 2*(nodes-1) {
				t.Errorf("%d nodes: one has %d sessions, want %d", nodes, got, 2*(nodes-1))
			}
		}
		w.heap = nil
		size := heap() - before
		runtime.KeepAlive(w)
		return size
	}
	return (run(true) - run(false)) / nodes
}

// mesh is a world in which every node posts to every other.
func mesh(nodes int, p plan) *world {
	p.nodes, p.sessions, p.buffers = nodes, 2*nodes+16, session.MaxWindow
	w := newWorld(newDice(1), p, nil)
	for _, n := range w.nodes {
		n.boot()
	}
	return w
}
