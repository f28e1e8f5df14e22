// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// plan is what one run consists of: sizes, limits and the strength of faults.
type plan struct {
	nodes   int
	clients int // per node
	ops     int // per client
	end     int64
	tick    int64 // ns between steps of a node to which nothing happens
	quiet   bool  // no faults at all: then everything must succeed
	unlucky bool  // engines draw neighbouring epochs and equal tags

	encap    wire.Kind
	mtu      int
	session  session.Config
	sessions int // most per engine
	buffers  int // most per pool
	rxRing   int // packets
	txRing   int
	uplink   float64 // bytes per ns; 0 unlimited
	downlink float64
	queue    int64 // ns of queue at the downlink

	delay  int64 // ns, one way, mean over links
	jitter int64
	rates  rates
	incidents
	hiccups float64 // probability, per step, of a stall of up to 8 ms

	burst    int   // most operations posted at once
	most     int   // most operations outstanding per client
	think    int64 // mean time between bursts
	wordOps  int   // most operations on a word that is checked for linearizability
	fences   float64
	badKeys  float64
	longOnes float64
}

// incidents are how often each of the rarer faults strikes in a run.
type incidents struct {
	partitions, clogs, stalls, crashes, leaps, deregistrations int
}

// forgetful is the leap of a clock, ns, from which on a target may take its
// sessions for dead, and a restart is what its initiators see.
const forgetful = 60 * second

// drawPlan makes a plan from the seed. One in twenty is quiet; the others have
// each kind of fault or not, so that interactions of few are seen as well as
// all at once.
func drawPlan(d dice) plan {
	p := plan{
		nodes: 2 + d.IntN(3), clients: 1 + d.IntN(3), ops: int(d.between(20, 80)),
		end: d.between(200, 2000) * millisecond, tick: pick(d, 200*microsecond, millisecond, millisecond),
		unlucky: d.chance(0.5),
		encap:   pick(d, wire.Ethernet, wire.Ethernet, wire.UDP4, wire.UDP6),
		mtu:     pick(d, 256, 512, 1500, 1500, 3498),
		session: session.Config{
			Window: pick(d, 1, 3, 8, 32, 64, 64),
			RTOMin: time.Duration(pick(d, 2*millisecond, 10*millisecond)),
			RTOMax: time.Duration(pick(d, 50*millisecond, 500*millisecond)),
			GiveUp: time.Duration(pick(d, 60*millisecond, 200*millisecond, 600*millisecond, 2*second)),
		},
		sessions: pick(d, 64, 64, 6), buffers: pick(d, 512, 512, 40),
		rxRing: pick(d, 2048, 256, 24), txRing: pick(d, 2048, 256, 16),
		delay: pick(d, 2*microsecond, 20*microsecond, 200*microsecond),
		burst: pick(d, 1, 8, 40), most: pick(d, 1, 16, 100), wordOps: 40,
		fences: pick(d, 0, 0.05, 0.3), badKeys: pick(d, 0, 0.05), longOnes: pick(d, 0, 0.1, 0.4),
	}
	p.think = p.end / int64(p.ops) * int64(p.burst) / 2
	if d.chance(0.3) {
		p.uplink, p.downlink, p.queue = 1.25, pick(d, 1.25, 0.125), pick(d, 50*microsecond, millisecond)
	}
	if d.chance(0.05) {
		p.quiet = true
		p.queue, p.rxRing, p.sessions, p.buffers = 0, 2048, 64, 512
		return p
	}
	p.drawFaults(d)
	return p
}

// drawFaults chooses which faults there are and how strong.
func (p *plan) drawFaults(d dice) {
	some := func(most float64) float64 {
		if d.chance(0.5) {
			return 0
		}
		return most * d.Float64() * d.Float64()
	}
	few := func(most int) int {
		if d.chance(0.6) {
			return 0
		}
		return 1 + d.IntN(most)
	}
	p.rates = rates{
		loss: some(0.3), duplicate: some(0.5), reorder: some(0.5), corrupt: some(0.2), replay: some(0.5),
	}
	if d.chance(0.5) {
		p.jitter = p.delay * d.between(1, 5)
	}
	p.incidents = incidents{
		partitions: few(4), clogs: few(4), stalls: few(4), crashes: few(3), leaps: few(3), deregistrations: few(3),
	}
}
