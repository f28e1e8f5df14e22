// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/sim/scale"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

var scaleDir = flag.String("scale", "", "directory, with scaling.md, into which TestScale writes the scaling model")

// scaleNodes are the points of the curves.
var scaleNodes = []int{10, 30, 100, 300, 1000, 1500, 2000, 3000, 10000}

// TestScale makes the scaling model: make sim-scale.
func TestScale(t *testing.T) {
	if *scaleDir == "" {
		t.Skip("takes minutes and writes files: make sim-scale")
	}
	r := newScaleReport(t)
	for _, n := range scaleNodes {
		r.Single = append(r.Single, timed(t, "single", n, single, scalePlan(), r.Setup.EchoCost))
		r.Bulk = append(r.Bulk, timed(t, "bulk", n, bulk, scalePlan(), int64(r.Setup.FrameTime)))
		if n > r.Setup.Accepted {
			p := scalePlan()
			p.sessions = wire.MaxSessions
			r.Raised = append(r.Raised, timed(t, "single, more sessions", n, single, p, r.Setup.EchoCost))
		}
	}
	for _, n := range []int{10, 30, 100, 200} {
		p := r.MemoryOf(n)
		p.Measured = allToAll(t, n)
		r.Memory = append(r.Memory, p)
	}
	for _, n := range []int{1000, r.Setup.Sessions/2 + 1, 5000, 10000} {
		r.Memory = append(r.Memory, r.MemoryOf(n))
	}
	if t.Failed() {
		return
	}
	writeScale(t, r, *scaleDir)
}

// newScaleReport measures the values that the model starts from.
func newScaleReport(t testing.TB) *scale.Report {
	t.Helper()
	p := scalePlan()
	w := star(1, p, 8, session.MaxWindow)
	cfg, _ := session.Config{}.WithDefaults()
	r := &scale.Report{Setup: scale.Setup{
		MTU: p.mtu, Rate: tenGigabit, SwitchQueue: switchQueue, RoundTrip: 2 * cableDelay, EchoCost: echoCost,
		FrameTime: frameTime(t), RXBuffers: xsk.DefaultRingSize, Accepted: accepts(t), NameSessions: wire.MaxSessions,
		Window: cfg.Window, FirstWindow: firstWindow(t), RTOMin: int64(cfg.RTOMin),
	}}
	limits := w.nodes[0].eng.Usage()
	r.Setup.Sessions, r.Setup.Buffers = limits.Limit, limits.Requests.Limit
	r.Limits = r.Setup.Bounds()
	b := &r.Bytes
	b.Initiator, b.Target = sessionBytes(t)
	b.Buffer, b.Domain, b.Packets, b.TickNS = bufferBytes(p.mtu), domainBytes(t), packetBytes, tickTime(t)
	return r
}

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

// timed makes a run, and adds the model's value.
func timed(t testing.TB, what string, n int, l load, p plan, turn int64) scale.Incast {
	t.Helper()
	start := time.Now()
	pt := incastRun(t, n, l, p, scaleSettle, scaleMeasure)
	s := scale.Setup{RoundTrip: 2 * cableDelay}
	pt.Model = s.Model(n, float64(turn))
	fmt.Printf("%s, %d nodes: %.0f k operations/s, p99 %.0f µs, model %.0f µs (%.1f s)\n", what, n, pt.PerSecond/1e3, pt.P99, pt.Model, time.Since(start).Seconds())
	return pt
}

// writeScale prints the tables and writes the files.
func writeScale(t testing.TB, r *scale.Report, dir string) {
	t.Helper()
	var tables bytes.Buffer
	r.Table(&tables)
	fmt.Printf("\n%s", tables.String())
	doc := filepath.Join(dir, "scaling.md")
	old, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	text, err := scale.Splice(string(old), tables.String())
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"scaling.md": []byte(text), "scaling.json": append(data, '\n'), "scaling.svg": r.Plot()} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The model agrees with the latency of real engines, for few and for many nodes.
func TestIncastFollowsModel(t *testing.T) {
	t.Parallel()
	s := scale.Setup{RoundTrip: 2 * cableDelay}
	for _, n := range []int{1, 10, 50, 300} {
		p := incastRun(t, n, single, scalePlan(), 20*millisecond, 20*millisecond)
		model := s.Model(n, echoCost)
		if math.Abs(p.P99-model) > 0.35*model || p.Refused+p.Starved+p.RingDrops+p.SwitchDrops+p.Failed != 0 || p.Resent != 0 {
			t.Errorf("%d nodes: model %.1f µs: %+v", n, model, p)
		}
		if want := min(float64(n)/model, 1e3/echoCost) * 1e6; math.Abs(p.PerSecond-want) > 0.15*want {
			t.Errorf("%d nodes: %.0f operations a second, want %.0f", n, p.PerSecond, want)
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
	if fit.RingDrops+fit.Starved+fit.Failed != 0 || fit.Resent != 0 || fit.Longest > 2*fit.P50 {
		t.Errorf("32 nodes, 32 buffers: %+v", fit)
	}
	over := incastRun(t, 64, single, p, 50*millisecond, 50*millisecond)
	if over.RingDrops == 0 || over.Resent == 0 || over.Longest < timeout || over.Failed != 0 {
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
		if (p.SwitchDrops > 0) != c.drops {
			t.Errorf("%d nodes, a queue of %d frames: %d dropped", c.nodes, frames, p.SwitchDrops)
		}
	}
}

// A target accepts 7/8 of its sessions, and the rest wait, as long as these are in use.
func TestSessionsBoundNodes(t *testing.T) {
	t.Parallel()
	p := scalePlan()
	p.sessions = 64
	if r := incastRun(t, 80, single, p, 20*millisecond, 20*millisecond); r.Refused != 0 || r.Starved != 80-56 {
		t.Errorf("80 nodes, 64 sessions: %+v", r)
	}
	w := star(1, scalePlan(), 8, session.MaxWindow)
	if all := w.nodes[0].eng.Usage().Limit; accepts(t) != all-all/8 {
		t.Errorf("%d sessions accepted, of %d", accepts(t), all)
	}
}

// A session takes at most 64 KiB, and memory grows as the model says.
func TestSessionMemory(t *testing.T) {
	long(t) // the race detector changes sizes
	r := scale.Report{Setup: scale.Setup{Sessions: 4096, Buffers: 8192, Window: 64}}
	r.Bytes.Initiator, r.Bytes.Target = sessionBytes(t)
	t.Logf("a session takes %d bytes at its initiator, %d at its target", r.Bytes.Initiator, r.Bytes.Target)
	if r.Bytes.Initiator < 1000 || r.Bytes.Target < 1000 || r.Bytes.Initiator+r.Bytes.Target > 64<<10 {
		t.Errorf("a session takes %d and %d bytes, want at most 64 KiB", r.Bytes.Initiator, r.Bytes.Target)
	}
	got, want := allToAll(t, 24), r.MemoryOf(24).Modelled
	if math.Abs(float64(got-want)) > 0.1*float64(want) {
		t.Errorf("24 nodes: %d bytes a node, the model says %d", got, want)
	}
}
