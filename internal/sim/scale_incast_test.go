// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"testing"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/xsk"
)

// load describes the operations of every initiator on the one target.
type load struct {
	verb  wire.Verb
	words int // of 64 bits
	most  int // operations outstanding
}

var (
	// single is one fetch-add in flight at each node: the latency of a fabric on
	// which all nodes count at one place.
	single = load{wire.VerbFetch, 1, 1}
	// bulk is arrays of a frame each, as many as the windows take.
	bulk = load{wire.VerbAtomic, frameWords, 128}
)

// sender is one initiator. It stops when its session is refused.
type sender struct {
	w           *world
	n           *node
	ring        *engine.Ring
	peer        *engine.Peer
	key         uint64
	load        load
	operand     []byte
	result      []byte
	outstanding int
	done        int
	refused     bool
	failed      int
	postedAt    int64 // of the last one, for a load of one in flight
	completed   func(s *sender)
}

// newSender joins node from to node 0.
func newSender(t testing.TB, w *world, from int, l load) *sender {
	t.Helper()
	n := w.nodes[from]
	s := &sender{w: w, n: n, load: l, key: w.nodes[0].regions[arrayRegion].key(), operand: repeat(1, l.words), result: make([]byte, 8*l.words)}
	var err error
	if s.ring, err = engine.NewRing(max(l.most, 2), engine.Contexts{}); err != nil {
		t.Fatal(err)
	}
	n.eng.AddRing(s.ring, nil)
	if s.peer, err = n.eng.NewPeer(n.linkTo(w.nodes[0]), 0, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// fill posts as many operations as may be outstanding.
func (s *sender) fill() {
	for s.outstanding < s.load.most && !s.refused {
		op := s.ring.Claim()
		if op == nil {
			break
		}
		op.Peer, op.Context, op.Key, op.Offset, op.Count = s.peer.ID(), s, s.key, 0, uint32(s.load.words)
		op.Verb, op.Opcode, op.Datatype, op.Flags = s.load.verb, uint8(atomic.Sum), uint8(atomic.Uint64), 0
		op.SetOperands(s.operand, nil)
		if s.load.verb == wire.VerbFetch {
			op.Result = s.result
		}
		op.Publish()
		s.outstanding++
		s.postedAt = s.w.now
	}
	s.n.wake(s.w.now)
}

// Complete implements engine.Completer. It schedules the next post for the same
// time: an entry is free only after its completion has returned.
func (s *sender) Complete(_ *engine.Submission, c *engine.Completion, later *engine.Later) {
	r := c.Result(later)
	s.outstanding--
	switch {
	case r.Outcome == engine.Success:
		s.done++
	case r.Outcome == engine.NotExecuted && r.Reason == session.RefusedFull:
		s.refused = true
		return
	default:
		s.failed++
	}
	if s.completed != nil {
		s.completed(s)
	}
	s.w.at(s.w.now, s.fill)
}

// star is a world of one target, made by the plan, and n initiators with room for
// the given sessions and buffers. A full matrix of links would take most of the
// memory, so only the links in use exist.
func star(n int, p plan, sessions, buffers int) *world {
	p.nodes = 0
	w := newWorld(newDice(1), p, nil)
	w.fenced = make([]int, n+1)
	w.net.down = make([]pipe, n+1)
	w.net.down[0] = pipe{rate: tenGigabit, limit: p.queue}
	for i := range n + 1 {
		w.nodes = append(w.nodes, newNode(w, i))
		row := []link{{delay: cableDelay}}
		if i == 0 {
			row = slices.Repeat(row, n+1)
		}
		w.net.links = append(w.net.links, row)
	}
	w.nodes[0].boot() // with the engine's own limits, or the plan's
	w.plan.sessions, w.plan.buffers = sessions, buffers
	for _, node := range w.nodes[1:] {
		node.boot()
	}
	return w
}

// echoCost is the time that a poller takes for one packet in and one out, in
// nanoseconds: that of a C program that echoes by AF_XDP in copy mode, on a virtual
// machine of two cores (0.83 million a second).
const echoCost = 1200

// scalePlan is the world of the scaling runs: rings of the default size, and a
// poller that looks at its timers whenever they are due.
func scalePlan() plan {
	return plan{mtu: 1500, delay: cableDelay, queue: switchQueue, rxRing: xsk.DefaultRingSize, txRing: xsk.DefaultRingSize, tick: 500 * microsecond, work: echoCost / 2}
}

// incastResult is what a run of many initiators against one target has measured.
type incastResult struct {
	refused, starved       int // initiators without a session, and those of which nothing completed
	operations, failed     int
	switchDrops, ringDrops int
	resent                 float64 // share of the bytes sent
	perSecond              float64 // operations
	// Times are in microseconds. Operations that still wait at the end count with their
	// time so far.
	p50, p99, longest float64
}

// incastRun has all nodes begin at once. After a time to settle, the run is measured for
// some time, both in nanoseconds.
func incastRun(t testing.TB, n int, l load, p plan, settle, measure int64) (r incastResult) {
	t.Helper()
	w := star(n, p, 8, session.MaxWindow)
	senders := make([]*sender, n)
	for i := range senders {
		senders[i] = newSender(t, w, i+1, l)
		w.at(w.now+int64(i)*100, senders[i].fill) // not all in one nanosecond
	}
	w.until(w.now+settle, nil)
	m := newMeter(w, senders)
	w.until(w.now+measure, nil)
	m.read(&r)
	if w.failure != nil {
		t.Fatal(w.failure)
	}
	return r
}

// meter measures a part of a run.
type meter struct {
	w       *world
	senders []*sender
	from    int64
	done    []int
	counts  [numCounters]int
	request int64 // bytes sent for the first time and again, so far
	resent  int64
	sentAt  map[frameOf]int64 // first transmission of requests without answer
	trips   []int64           // of frames
	waits   []int64           // of operations, if one is in flight
}

// frameOf names a frame of the only session of a node.
type frameOf struct {
	node int
	psn  uint32
}

func newMeter(w *world, senders []*sender) *meter {
	m := &meter{w: w, senders: senders, from: w.now, counts: w.counts, request: w.tap.requestBytes, resent: w.tap.resentBytes,
		sentAt: map[frameOf]int64{}}
	for _, s := range senders {
		m.done = append(m.done, s.done)
		if s.load.most == 1 {
			s.completed = func(s *sender) { m.waits = append(m.waits, w.now-s.postedAt) }
		}
	}
	w.net.drop = func(from, _ *node, packet []byte) bool {
		if h, ok := isRequest(packet); ok && h.Flags&wire.FlagRetx == 0 {
			m.sentAt[frameOf{from.index, h.PSN}] = w.now
		}
		return false
	}
	w.net.arrived = func(_, to *node, _ int64, packet []byte) {
		if to.index != 0 {
			m.answered(to.index, packet)
		}
	}
	return m
}

// answered ends the round trips of the frames that a packet answers.
func (m *meter) answered(node int, packet []byte) {
	frame, _, _ := wire.Decap(packet)
	h, _, reason := wire.Parse(frame)
	first, last := h.PSN, h.Ack
	switch {
	case reason != wire.ReasonOK || h.Type != wire.Response && h.Type != wire.Ack:
		return
	case h.Type == wire.Response:
		last = h.PSN
	case wire.Diff(last, first) >= session.MaxWindow:
		return
	}
	for psn := first; psn != last+1; psn++ {
		if at, ok := m.sentAt[frameOf{node, psn}]; ok {
			m.trips = append(m.trips, m.w.now-at)
			delete(m.sentAt, frameOf{node, psn})
		}
	}
}

// read fills in the measured values.
func (m *meter) read(r *incastResult) {
	w := m.w
	took := w.now - m.from
	for i, s := range m.senders {
		if s.refused {
			r.refused++
			continue
		}
		if s.done == m.done[i] {
			r.starved++
		}
		if s.load.most == 1 && s.outstanding > 0 { // an operation that still waits counts with its time so far
			m.waits = append(m.waits, w.now-s.postedAt)
		}
		r.failed += s.failed
		r.operations += s.done - m.done[i]
	}
	for _, at := range m.sentAt {
		m.trips = append(m.trips, w.now-at)
	}
	trips := m.trips
	if m.waits != nil {
		trips = m.waits
	}
	slices.Sort(trips)
	if len(trips) > 0 {
		r.p50 = float64(trips[len(trips)/2]) / 1e3
		r.p99 = float64(trips[len(trips)*99/100]) / 1e3
		r.longest = float64(trips[len(trips)-1]) / 1e3
	}
	r.perSecond = float64(r.operations) * float64(second) / float64(took)
	r.switchDrops = w.counts[tailDropped] - m.counts[tailDropped]
	r.ringDrops = w.counts[rxOverflow] - m.counts[rxOverflow]
	if sent := w.tap.requestBytes - m.request; sent > 0 {
		r.resent = float64(w.tap.resentBytes-m.resent) / float64(sent)
	}
}
