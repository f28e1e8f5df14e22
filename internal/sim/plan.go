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
	work    int64 // ns of a step for each packet in or out, or operation; 0 means workCost
	certain bool  // has so few faults that everything must succeed
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

	story   []phase // of a run of hours, in place of the incidents
	cancels float64
	prompt  bool // a whole give-up time without an answer and without trouble is a failure
	ends    bool // an endpoint that closes ends its sessions
	leaps   bool // idle time is skipped
	routed  bool // each node has a gateway
	roams   bool // a node that comes back has another MAC address
	queues  int  // of each node; 0 means one
	typed   bool // words have datatypes of their own
	aliases int  // further names of each pair

	wants    int64 // most destinations of a client
	burst    int   // most operations posted at once
	most     int   // most operations outstanding per client
	think    int64 // mean time between bursts
	wordOps  int   // most operations on a word that is checked for linearizability
	fences   float64
	badKeys  float64
	longOnes float64
	anyOrder float64 // share of the clients that need no order
	letters  float64 // share of the operations that are messages
	attends  uint    // the regions that are the memory of guests, as bits
	behind   float64 // how often there is no room for the rest of one
}

// incidents are how often each of the rarer faults strikes in a run.
type incidents struct {
	partitions, clogs, stalls, crashes, leaps, deregistrations, guestDeaths int
}

// forgetful is the leap of a clock, ns, from which on a target may take its
// sessions for dead; to its initiators it then looks like a restart.
const forgetful = 60 * second

// drawPlan makes a plan from the seed. Each kind of fault is in it or not, so
// that runs show the interactions of a few kinds as well as of all. One plan in
// twenty has no faults, two have only faults that retransmission repairs, and
// ten are haunted.
func drawPlan(d dice, with Dims) plan {
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
		sessions: pick(d, 64, 64, 6), buffers: pick(d, 512, 512, 40, 12, 12),
		leaps: true, wants: 3, typed: d.chance(0.5),
		rxRing: pick(d, 2048, 256, 24), txRing: pick(d, 2048, 256, 16),
		delay: pick(d, 2*microsecond, 20*microsecond, 200*microsecond),
		burst: pick(d, 1, 8, 40), most: pick(d, 1, 16, 100), wordOps: 40,
		fences: pick(d, 0, 0.05, 0.3), badKeys: pick(d, 0, 0.05), longOnes: pick(d, 0, 0.1, 0.4),
		anyOrder: 0.4,
	}
	if p.mtu == 3498 && p.ops%2 == 0 { // no draw, so that seeds mean what they meant
		p.mtu = 9000
	}
	if d.chance(0.2) { // sessions so long that their windows wrap around
		p.ops, p.most, p.longOnes = 300, 100, 0.2
	}
	p.think = p.end / int64(p.ops) * int64(p.burst) / 2
	if d.chance(0.3) {
		p.uplink, p.downlink, p.queue = 1.25, pick(d, 1.25, 0.125), pick(d, 50*microsecond, millisecond)
	}
	if with.has(Messages) && d.chance(0.5) {
		p.letters, p.behind = pick(d, 0.1, 0.3, 0.7), 0.02
	}
	if with.has(Hours) && d.chance(0.5) {
		p.tell(d, with)
		return p
	}
	p.drawFaults(d)
	switch kind := d.IntN(20); kind {
	case 0, 1, 2:
		p.beCertain(kind == 0)
	case 3, 4, 5, 6, 7, 8, 9, 10, 11, 12:
		p.haunt(d)
	}
	return p
}

// attend gives the nodes of half the storms guests, which have some of the memory.
func (p *plan) attend(d dice) {
	if p.story != nil || !d.chance(0.5) {
		return
	}
	p.attends = uint(d.IntN(1 << hiddenRegion))
	if !p.certain && p.attends != 0 {
		p.guestDeaths = d.IntN(3)
	}
}

// beCertain removes everything from the plan that excuses failure: without
// incidents, with room for all clients and with time for some forty
// retransmissions, nothing may fail.
func (p *plan) beCertain(faultless bool) {
	p.certain = true
	p.incidents = incidents{}
	p.rates.loss = min(p.rates.loss, 0.2)
	p.queue, p.rxRing, p.sessions, p.buffers = 0, 2048, 64, 512
	p.session.RTOMax, p.session.GiveUp = time.Duration(50*millisecond), time.Duration(2*second)
	if faultless {
		p.rates, p.jitter = rates{}, 0
	}
}

// haunt makes the plan one of two nodes, each of which lives many lives and
// gives up often, while the packets of old sessions keep coming.
func (p *plan) haunt(d dice) {
	p.nodes, p.clients, p.ops, p.end = 2, 1, 150, second
	p.burst, p.most, p.think, p.unlucky = 8, 100, 30*millisecond, true
	p.sessions, p.buffers, p.rxRing, p.fences = 64, 512, 2048, 0
	p.mtu, p.longOnes, p.session.Window = 256, 0.5, 64 // many frames in flight
	p.session.GiveUp, p.session.RTOMax = time.Duration(60*millisecond), time.Duration(20*millisecond)
	p.rates.replay, p.rates.loss, p.rates.corrupt = 0.2, min(p.rates.loss, 0.05), 0
	p.incidents = incidents{partitions: 8, crashes: d.IntN(7)}
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
