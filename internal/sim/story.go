// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

const (
	minute = 60 * second
	hour   = 60 * minute
)

// chapter is a kind of phase.
type chapter int

// The chapters of a story.
const (
	busy   chapter = iota // clients post
	idle                  // nothing happens
	outage                // some links are cut; perhaps something else happens meanwhile
	freeze                // a node is off its core, and its peers go on
	manual                // a node has nothing to do, and steps only when it has
	death                 // a node crashes, and comes back
	move                  // a gateway gets another address
	steer                 // a NIC chooses other queues
	shut                  // a node's endpoints close for a while
	renew                 // a region is registered again, with other memory
	numChapters
)

var chapterNames = [numChapters]string{"busy", "idle", "outage", "freeze", "manual", "death", "move", "steer",
	"shut", "renew"}

func (c chapter) String() string { return chapterNames[c] }

// phase is a part of a story. Times are nanoseconds.
type phase struct {
	what   chapter
	length int64
	inside chapter // the chapter that happens within an outage; busy for none
	inner  int64   // how long that takes
	posts  int     // bursts of each client while it lasts
}

func (p phase) String() string {
	s := fmt.Sprintf("%v %.3f s, %d bursts", p.what, float64(p.length)/float64(second), p.posts)
	if p.inside != busy {
		s += fmt.Sprintf(", %v for %.3f s inside", p.inside, float64(p.inner)/float64(second))
	}
	return s
}

// scale returns a duration between two others; each order of magnitude is
// equally likely.
func (d dice) scale(lo, hi int64) int64 {
	return int64(float64(lo) * math.Pow(float64(hi)/float64(lo), d.Float64()))
}

// tell makes the plan one of hours, with few nodes and operations, and with a
// story.
func (p *plan) tell(d dice, with Dims) {
	p.nodes, p.clients, p.wants = 2+d.IntN(2), 1+d.IntN(2), 2
	p.ops, p.burst, p.most, p.wordOps = 120, pick(d, 1, 4, 12), pick(d, 4, 64), 30
	p.tick, p.typed, p.hiccups = millisecond, d.chance(0.7), 0
	p.encap = pick(d, wire.Ethernet, wire.UDP4, wire.UDP6)
	p.mtu, p.delay, p.jitter = pick(d, 256, 1500), pick(d, 20*microsecond, 200*microsecond), 0
	if p.mtu == 1500 && p.burst == 4 { // no draw, so that seeds mean what they meant
		p.mtu = 9000
	}
	p.rates, p.incidents = rates{loss: pick(d, 0, 0, 0.02), duplicate: pick(d, 0, 0.05)}, incidents{}
	p.uplink, p.downlink, p.queue, p.rxRing, p.txRing = 0, 0, 0, 2048, 2048
	p.fences, p.badKeys, p.longOnes = pick(d, 0, 0.1), pick(d, 0, 0.02), pick(d, 0, 0.1)
	p.sessions, p.buffers = 64, 512
	p.session = session.Config{
		Window: pick(d, 1, 8, 64), RTOMin: time.Duration(10 * millisecond),
		RTOMax: time.Duration(pick(d, 100*millisecond, 500*millisecond)),
		GiveUp: time.Duration(pick(d, second, 5*second, 5*second, 20*second)),
	}
	if with.has(Patient) && d.chance(0.3) {
		p.session.GiveUp = time.Duration(200 * second)
	}
	if with.has(Queues) && d.chance(0.5) {
		p.queues = 2 + d.IntN(2)
	}
	if with.has(Aliases) && d.chance(0.4) {
		p.aliases = 1 + d.IntN(2)
	}
	if with.has(Cancels) && d.chance(0.5) {
		p.cancels = 0.2
	}
	if with.has(Tight) && d.chance(0.4) {
		p.sessions, p.buffers = pick(d, 4, 64), pick(d, 12, 512)
	}
	if with.has(Moves) && p.encap != wire.Ethernet {
		p.routed = d.chance(0.7)
		p.roams = !p.routed
	}
	p.end, p.ends, p.prompt = 0, with.has(Ends), with.has(Prompt)
	var kinds []chapter
	for _, c := range []struct {
		what   chapter
		weight int
		wanted bool
	}{
		{idle, 2, true}, {outage, 3, true}, {death, 3, d.chance(0.6)}, {renew, 1, true},
		{freeze, 1, with.has(Freeze)}, {manual, 1, with.has(Freeze)}, {move, 2, p.routed},
		{steer, 1, p.queues > 1}, {shut, 1, with.has(Shut | Ends)},
	} {
		for range c.weight {
			if c.wanted {
				kinds = append(kinds, c.what)
			}
		}
	}
	for range d.between(2, 6) {
		p.add(phase{what: busy, length: d.scale(millisecond, 2*second), posts: 1 + d.IntN(5)})
		p.add(p.drawPhase(d, with, kinds))
	}
	p.add(phase{what: busy, length: d.scale(millisecond, second), posts: 4})
}

func (p *plan) add(ph phase) {
	p.story = append(p.story, ph)
	p.end += ph.length
}

// drawPhase draws a phase that happens between busy times.
func (p *plan) drawPhase(d dice, with Dims, kinds []chapter) phase {
	ph := phase{what: pick(d, kinds...), length: d.scale(10*millisecond, minute), posts: d.IntN(4)}
	switch ph.what {
	case idle:
		ph.length, ph.posts = d.scale(second, 3*hour), 0
	case freeze, manual:
		if ph.length = d.scale(second, 200*second); d.chance(0.4) {
			ph.length = d.between(95, 200) * second // when targets have forgotten it
		}
	case death:
		ph.length = d.scale(millisecond, 10*minute)
	case outage:
		longest := int64(50 * second) // sessions given up are still known afterwards
		if with.has(Outage) && d.chance(0.6) {
			longest = pick(d, 2*minute, 2*hour)
		}
		ph.length = d.scale(10*millisecond, longest)
		switch {
		case longest > minute && d.chance(0.4):
			ph.length = d.between(60, 90) * second // when the sides forget at different times
		case p.session.GiveUp > time.Duration(100*second) && d.chance(0.5):
			ph.length, ph.posts = d.between(90, 190)*second, 1 // when a target forgets sessions that are not given up
		}
		var also []chapter
		for _, k := range kinds {
			if k == move || k == steer || k == shut || k == death && with.has(Outage) {
				also = append(also, k)
			}
		}
		if len(also) > 0 && d.chance(0.5) {
			ph.inside, ph.inner = pick(d, also...), d.scale(10*millisecond, 2*minute)
			if ph.inside == shut && d.chance(0.5) {
				ph.inner = ph.length + d.between(10, 50)*second // so that the session after one given up is refused
			}
		}
	}
	return ph
}

// live lets the phases of the story happen, one after another.
func (w *world) live() {
	failed := func() bool { return w.failure != nil }
	for _, ph := range w.plan.story {
		w.trace.event("phase: %v", ph)
		w.count(phases)
		end := w.now + ph.length
		w.begin(ph, end)
		w.work(ph, end)
		w.until(end, failed)
		if failed() {
			return
		}
		w.checkLimits()
		w.haunt()
	}
}

// work makes the clients post while a phase lasts, often at its beginning, so
// that there are operations under way whatever happens.
func (w *world) work(ph phase, end int64) {
	for _, n := range w.nodes {
		for _, c := range n.clients {
			for i := range ph.posts {
				at := w.now + w.dice.Int64N(max(end-w.now, 1))
				if i == 0 || w.dice.chance(0.3) {
					at = w.now + w.dice.Int64N(max(min(end-w.now, 5*millisecond), 1))
				}
				w.at(at, c.burst)
			}
		}
	}
}

// begin starts the events of a phase. They are over by its end.
func (w *world) begin(ph phase, end int64) {
	switch ph.what {
	case outage:
		w.cutOff(end)
		if ph.inside != busy {
			at := w.now + w.dice.Int64N(max(ph.length, 1))
			w.at(at, func() { w.begin(phase{what: ph.inside, length: ph.inner}, w.now+ph.inner) })
		}
	case freeze, manual:
		w.freeze(end, ph.what == manual)
	case death:
		w.crash(ph.length)
	case move:
		w.move()
	case steer:
		n := w.anyNode()
		w.count(steerings)
		w.trace.event("%v chooses queues anew", n)
		n.steer = w.dice.Uint64()
	case shut:
		w.closeEndpoints(end)
	case renew:
		w.renewRegion(ph.length)
	}
}
