// SPDX-License-Identifier: Apache-2.0

// Package scale is the report of how the design behaves as nodes are added: its
// figures, the model that they are compared with, and the output of both. The
// runs are tests of package sim, which fill it: make sim-scale.
package scale

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/engine"
)

// Report is the whole report: runs simulated with real engines, measurements of
// their memory, and the model that both are compared with.
type Report struct {
	Setup  Setup    `json:"setup"`
	Bytes  Sizes    `json:"bytes"`
	Single []Incast `json:"single"` // one fetch-add in flight at each node
	Bulk   []Incast `json:"bulk"`   // full frames, as many as the windows take
	// Raised is Single with room at the target for as many sessions as an id can
	// name on one queue.
	Raised []Incast `json:"single_more_sessions"`
	Memory []Memory `json:"memory"`
	Limits []Limit  `json:"limits"`
}

// Setup describes the simulated set-up. Times are in nanoseconds.
type Setup struct {
	MTU          int     `json:"mtu"`
	Rate         float64 `json:"bytes_per_ns"`    // of the target's line
	SwitchQueue  int64   `json:"switch_queue_ns"` // before it
	RoundTrip    int64   `json:"round_trip_ns"`   // of the cables
	EchoCost     int64   `json:"echo_ns"`         // of a poller, for a packet in and one out
	FrameTime    float64 `json:"frame_ns"`        // of a full frame on the line
	RXBuffers    int     `json:"rx_buffers"`      // of a queue
	Sessions     int     `json:"sessions"`        // of an engine
	Accepted     int     `json:"accepted"`        // of them, for peers
	NameSessions int     `json:"sessions_in_an_id"`
	Buffers      int     `json:"buffers"` // of each of an engine's three pools
	Window       int     `json:"window"`
	FirstWindow  int     `json:"first_window"`
	RTOMin       int64   `json:"rto_min_ns"`
}

// Sizes are measured sizes of a node's structures.
type Sizes struct {
	Initiator int `json:"session_initiator"` // half of a session, without frames
	Target    int `json:"session_target"`    // the other half, with its one buffer
	Buffer    int `json:"buffer"`            // of one frame in flight
	Domain    int `json:"domain"`            // a domain of one queue and an endpoint, without packet memory
	Packets   int `json:"packet_memory"`     // of a queue
	// TickNS is how long looking at one session's timers takes, in nanoseconds of
	// this machine; it happens every millisecond.
	TickNS float64 `json:"tick_ns"`
}

// Incast is one run of many initiators against one target. Times are in
// microseconds of virtual time.
type Incast struct {
	Nodes       int     `json:"nodes"` // initiators
	Refused     int     `json:"refused"`
	Starved     int     `json:"starved"`  // initiators of which nothing completed during the measurement
	StartMS     float64 `json:"start_ms"` // until each initiator has had its first answer, or a refusal
	Operations  int     `json:"operations"`
	Failed      int     `json:"failed"`
	PerSecond   float64 `json:"operations_per_second"`
	P50         float64 `json:"p50_us"`
	P99         float64 `json:"p99_us"` // operations that still wait at the end count with their time so far
	Longest     float64 `json:"-"`      // likewise, µs
	Model       float64 `json:"model_us"`
	Goodput     float64 `json:"goodput"`  // share of the target's line
	Fairness    float64 `json:"fairness"` // Jain's index over those admitted
	SwitchDrops int     `json:"switch_drops"`
	RingDrops   int     `json:"ring_drops"`
	Resent      float64 `json:"resent"` // share of the bytes sent
}

// Memory is a node's memory when every node has a session to every other, in
// bytes.
type Memory struct {
	Nodes    int  `json:"nodes"`
	Sessions int  `json:"sessions"` // of a node, both halves counted
	Queues   int  `json:"queues"`   // that it takes
	Idle     int  `json:"idle"`     // model: nothing was ever in flight
	Most     int  `json:"most"`     // model: every buffer was in use once
	Measured int  `json:"measured"` // of real engines, as idle without domain and packets; 0: model only
	Modelled int  `json:"modelled"` // the model's value for that
	Fits     bool `json:"fits"`     // into one queue
}

// Limit is a bound of the design, and the number of nodes that it allows.
type Limit struct {
	What   string `json:"what"`
	Nodes  int    `json:"nodes"`
	Beyond string `json:"beyond"` // what happens with more nodes
}

// Model returns the latency, in microseconds, that no congestion control can avoid
// when every node has one frame under way and each frame occupies the bottleneck
// for the given nanoseconds: with few nodes the delay of the cables and of one
// frame, with many that of a frame of every node (the asymptotic bounds of a
// closed queueing network).
func (s *Setup) Model(nodes int, turn float64) float64 {
	return max(float64(s.RoundTrip)+turn, float64(nodes)*turn) / 1e3
}

// MemoryOf models the memory of a node when every node has a session to every
// other.
func (r *Report) MemoryOf(nodes int) Memory {
	s, b := &r.Setup, &r.Bytes
	others := nodes - 1
	p := Memory{Nodes: nodes, Sessions: 2 * others}
	p.Queues = max((p.Sessions+s.Sessions-1)/s.Sessions, 1)
	p.Fits = p.Queues == 1
	p.Modelled = others * (b.Initiator + b.Target)
	p.Idle = p.Modelled + p.Queues*(b.Packets+b.Domain)
	p.Most = p.Idle + 3*min(others*s.Window, p.Queues*s.Buffers)*b.Buffer
	return p
}

// Bounds returns the bounds that follow from the set-up, the tightest first.
func (s *Setup) Bounds() []Limit {
	turns := func(ns float64, turn float64) int { return int(ns / turn) }
	list := []Limit{
		{"a full window of every node in the target's receive buffers", s.RXBuffers / s.Window,
			"credits alone no longer keep a stalled poller from losing frames; the congestion window has to"},
		{"the first window of every node there", s.RXBuffers / s.FirstWindow,
			"a start of all at the same moment loses frames; timeouts repair it, and it takes them a while"},
		{"a full window of every node in a pool of answers or early frames", s.Buffers / s.Window,
			"a pool may run out, and a frame is then dropped and sent again; congestion windows are smaller by then"},
		{"one frame of every node in the switch's queue", turns(float64(s.SwitchQueue), s.FrameTime),
			"full frames are dropped for ever, as a window is never less than one frame"},
		{"one session each way between all, on one queue", s.Sessions/2 + 1,
			"more queues, or operations wait for a session, for the give-up time at most"},
		{"one frame of every node in the target's receive buffers", s.RXBuffers,
			"the ring overflows for ever; nodes whose frames are dropped wait for timeouts, and some starve"},
		{"sessions that one queue accepts", s.Accepted,
			"more queues, or the rest waits for a session, for the give-up time at most"},
		{"one turn of every node within the least retransmission timeout",
			turns(float64(s.RTOMin), float64(s.EchoCost)),
			"hellos time out while they wait in line"},
	}
	slices.SortStableFunc(list, func(a, b Limit) int { return a.Nodes - b.Nodes })
	return list
}

// Table prints the report as Markdown.
func (r *Report) Table(w io.Writer) {
	fmt.Fprint(w, "One fetch-add in flight at each node:\n\n")
	incastTable(w, r.Single)
	if len(r.Raised) > 0 {
		fmt.Fprintf(w, "\nThe same, with room for %d sessions on the target's queue:\n\n", r.Setup.NameSessions)
		incastTable(w, r.Raised)
	}
	fmt.Fprint(w, "\nFull frames, as many as the windows take:\n\n")
	incastTable(w, r.Bulk)
	b := &r.Bytes
	fmt.Fprintf(w, "\nMemory: a session takes %d bytes at its initiator and %d at its target, a frame in flight %d; "+
		"a domain of one queue "+
		"%d KiB and %d MiB of packet memory. With sessions from every node to every other, a node holds:\n\n",
		b.Initiator, b.Target, b.Buffer, b.Domain>>10, b.Packets>>20)
	fmt.Fprint(w, "| nodes | sessions | queues | idle, MiB | at most, MiB | sessions measured, KiB | model, KiB "+
		"|\n|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, p := range r.Memory {
		measured := "–"
		if p.Measured > 0 {
			measured = fmt.Sprint(p.Measured >> 10)
		}
		fmt.Fprintf(w, "| %d | %d | %d | %.1f | %.1f | %s | %d |\n", p.Nodes, p.Sessions, p.Queues, mib(p.Idle),
			mib(p.Most), measured, p.Modelled>>10)
	}
	fmt.Fprintf(w, "\nTimers: looking at a session takes %.0f ns of the machine at hand; %d have their turn each "+
		"millisecond: %.1f %% of a poller at most, and at %d sessions timers are up to %d ms late.\n",
		b.TickNS, engine.TimerBatch, 100*b.TickNS*engine.TimerBatch/float64(time.Millisecond), r.Setup.Sessions,
		(r.Setup.Sessions+engine.TimerBatch-1)/engine.TimerBatch)
	fmt.Fprint(w, "\nWhere it ends, one queue a node:\n\n| nodes | what reaches its bound | beyond |\n|--:|---|---|\n")
	for _, l := range r.Limits {
		fmt.Fprintf(w, "| %d | %s | %s |\n", l.Nodes, l.What, l.Beyond)
	}
}

func incastTable(w io.Writer, points []Incast) {
	fmt.Fprint(w, "| nodes | operations/s | p50, µs | p99, µs | model, µs | of the line | fairness | refused | "+
		"starved | lost: switch | ring | sent again |\n"+
		"|"+strings.Repeat("--:|", 12)+"\n")
	for _, p := range points {
		fmt.Fprintf(w, "| %d | %.0f k | %.0f | %.0f | %.0f | %.0f %% | %.3f | %d | %d | %d | %d | %.1f %% |\n", p.Nodes,
			p.PerSecond/1e3, p.P50, p.P99,
			p.Model, 100*p.Goodput, p.Fairness, p.Refused, p.Starved, p.SwitchDrops, p.RingDrops, 100*p.Resent)
	}
}

func mib(n int) float64 { return float64(n) / (1 << 20) }

// The marks in docs/scaling.md between which the tables stand.
const (
	beginMark = "<!-- begin: written by make sim-scale -->\n"
	endMark   = "<!-- end -->"
)

// Splice puts the tables into the document, between the marks.
func Splice(doc, tables string) (string, error) {
	before, rest, ok1 := strings.Cut(doc, beginMark)
	_, after, ok2 := strings.Cut(rest, endMark)
	if !ok1 || !ok2 {
		return "", fmt.Errorf("scale: the document has no marks %q and %q to put the tables between",
			strings.TrimSpace(beginMark), endMark)
	}
	return before + beginMark + "\n" + tables + "\n" + endMark + after, nil
}
