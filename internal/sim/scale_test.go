// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/xdpfab/xdpfab/internal/session"
)

// frameTime returns how long a request of the bulk load occupies the target's
// line.
func frameTime(t testing.TB) float64 {
	t.Helper()
	w := star(1, scalePlan(), 8, session.MaxWindow)
	size := 0
	w.net.drop = func(_, _ *node, packet []byte) bool {
		if _, ok := isRequest(packet); ok {
			size = len(packet)
		}
		return false
	}
	newSender(t, w, 1, bulk).fill()
	w.until(w.now+millisecond, nil)
	return float64(size+wireOverhead) / tenGigabit
}

// leastWait returns the latency, in microseconds, that no congestion control can avoid
// when every node has one frame under way and each frame occupies the bottleneck for turn
// nanoseconds: with few nodes the delay of the cables and of one frame, with many that
// of a frame of every node (the asymptotic bounds of a closed queueing network).
func leastWait(nodes int, turn float64) float64 {
	return max(float64(2*cableDelay)+turn, float64(nodes)*turn) / 1e3
}

// The model agrees with the latency of real engines, for few and for many nodes.
func TestIncastFollowsModel(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 10, 50, 300} {
		p := incastRun(t, n, single, scalePlan(), 20*millisecond, 20*millisecond)
		model := leastWait(n, echoCost)
		if math.Abs(p.p99-model) > 0.35*model || p.refused+p.starved+p.ringDrops+p.switchDrops+p.failed != 0 ||
			p.resent != 0 {
			t.Errorf("%d nodes: model %.1f µs: %+v", n, model, p)
		}
		if want := min(float64(n)/model, 1e3/echoCost) * 1e6; math.Abs(p.perSecond-want) > 0.15*want {
			t.Errorf("%d nodes: %.0f operations a second, want %.0f", n, p.perSecond, want)
		}
	}
}

// The rows of docs/scaling.md for XDPFAB_NODES nodes.
func TestIncastOfNodes(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("XDPFAB_NODES"))
	if err != nil {
		t.Skip("prints the rows of docs/scaling.md for the number of nodes in XDPFAB_NODES")
	}
	for _, c := range []struct {
		name string
		load load
	}{{"one fetch-add in flight", single}, {"full frames", bulk}} {
		p := incastRun(t, n, c.load, scalePlan(), 400*millisecond, 100*millisecond)
		t.Logf("%d nodes, %s: %.0f operations a second; p50 %.0f µs, p99 %.0f µs; %d refused, %d starved; "+
			"%d lost at the switch, %d in the ring, %.1f %% sent again", n, c.name, p.perSecond, p.p50, p.p99,
			p.refused, p.starved, p.switchDrops, p.ringDrops, 100*p.resent)
		if p.failed != 0 {
			t.Errorf("%d operations failed", p.failed)
		}
	}
}

// One frame of everybody has to fit into the target's receive buffers. Where it does,
// nobody waits for longer than a turn of everybody. Beyond that, some are always without:
// their frames were dropped, and wait for a timeout. Whose they are changes with each
// timeout, so shares say little, and depend on when they are measured.
func TestReceiveBuffersBoundNodes(t *testing.T) {
	t.Parallel()
	p := scalePlan()
	p.rxRing = 32
	cfg, _ := session.Config{}.WithDefaults()
	timeout := float64(cfg.RTOMin) / 1e3 // µs
	fit := incastRun(t, 32, single, p, 50*millisecond, 50*millisecond)
	if fit.ringDrops+fit.starved+fit.failed != 0 || fit.resent != 0 || fit.longest > 2*fit.p50 {
		t.Errorf("32 nodes, 32 buffers: %+v", fit)
	}
	over := incastRun(t, 64, single, p, 50*millisecond, 50*millisecond)
	if over.ringDrops == 0 || over.resent == 0 || over.longest < timeout || over.failed != 0 {
		t.Errorf("64 nodes, 32 buffers: %+v; want drops, and somebody who waits for at least %.0f µs", over, timeout)
	}
}

// One full frame of every node has to fit into the switch's queue.
func TestSwitchQueueBoundsNodes(t *testing.T) {
	t.Parallel()
	if os.Getenv("XDPFAB_LONG") == "" {
		t.Skip("takes long: make test-long")
	}
	const frames = 400
	plan := scalePlan()
	plan.queue = int64(frames * frameTime(t))
	for _, c := range []struct {
		nodes int
		drops bool
	}{{frames - 100, false}, {frames + 100, true}} {
		p := incastRun(t, c.nodes, bulk, plan, 200*millisecond, 20*millisecond)
		if (p.switchDrops > 0) != c.drops {
			t.Errorf("%d nodes, a queue of %d frames: %d dropped", c.nodes, frames, p.switchDrops)
		}
	}
}

// A target accepts 7/8 of its sessions, and the rest wait, as long as these are in use.
func TestSessionsBoundNodes(t *testing.T) {
	t.Parallel()
	p := scalePlan()
	p.sessions = 64
	if r := incastRun(t, 80, single, p, 20*millisecond, 20*millisecond); r.refused != 0 || r.starved != 80-56 {
		t.Errorf("80 nodes, 64 sessions: %+v", r)
	}
	w := star(1, scalePlan(), 8, session.MaxWindow)
	if all := w.nodes[0].eng.Usage().Limit; accepts(t) != all-all/8 {
		t.Errorf("%d sessions accepted, of %d", accepts(t), all)
	}
}

// A session takes at most 64 KiB, and memory grows with the sessions alone.
func TestSessionMemory(t *testing.T) {
	long(t) // the race detector changes sizes
	initiator, target := sessionBytes(t)
	t.Logf("a session takes %d bytes at its initiator, %d at its target", initiator, target)
	if initiator < 1000 || target < 1000 || initiator+target > 64<<10 {
		t.Errorf("a session takes %d and %d bytes, want at most 64 KiB", initiator, target)
	}
	const nodes = 24
	got, want := allToAll(t, nodes), (nodes-1)*(initiator+target)
	if math.Abs(float64(got-want)) > 0.1*float64(want) {
		t.Errorf("%d nodes: %d bytes a node, its sessions take %d", nodes, got, want)
	}
}
