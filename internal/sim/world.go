// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"io"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// world is one run.
type world struct {
	scheduler
	dice   dice
	plan   plan
	net    *network
	nodes  []*node
	pairs  []*pair // of all lives
	types  [registerRegion + 1][]atomic.Datatype
	tap    wiretap
	trace  *tracer
	random func() uint64 // for engines

	words    map[wordID]use // operations on each word
	asking   []*op          // those that ask for an event
	copied   []*op          // remote writes
	writers  map[uint64]*op // remote writes, by what their words have in common
	letters  []*letter      // all messages
	fenced   []int          // words of the fence region in use, by node
	pending  int            // operations not completed whose poster lives
	calm     bool           // faults are over
	troubles []trouble
	failure  error
	counts   [numCounters]int
}

// Run makes the run of a seed, with the given dimensions, and returns its report. A
// readable trace goes to trace, if that is not nil.
func Run(seed uint64, with Dims, trace io.Writer) Report {
	d := newDice(seed)
	p := drawPlan(d, with)
	if with.has(Attend) {
		p.attend(newDice(^seed)) // of its own, so that other runs stay as they are
	}
	w := newWorld(d, p, trace)
	w.run()
	return Report{Runs: 1, Virtual: w.now, Trace: w.trace.sum.Sum64(), Failure: w.failure, counts: w.counts}
}

// newWorld builds nodes and links, and starts nothing.
func newWorld(d dice, p plan, trace io.Writer) *world {
	w := &world{dice: d, plan: p, words: map[wordID]use{}, writers: map[uint64]*op{}, fenced: make([]int, p.nodes),
		random: d.Uint64}
	w.now = 1
	if p.unlucky {
		w.random = newUnlucky(d).next
	}
	w.trace = newTracer(w, trace)
	w.trace.event("plan %+v", p)
	w.tap = wiretap{w: w, requests: map[frameID]uint64{}, fences: map[wordID]*op{}, asked: map[uint64]wire.HelloMsg{},
		parts: map[frameID]progress{}, proofs: proofs{}}
	for kind := range w.types {
		for range regionWords[kind] {
			w.types[kind] = append(w.types[kind], pick(d, dataTypes...))
		}
	}
	w.net = newNetwork(w, p.nodes)
	for i := range p.nodes {
		w.nodes = append(w.nodes, newNode(w, i))
		w.net.down[i] = pipe{rate: p.downlink, limit: p.queue}
		for j := range p.nodes {
			f := d.Float64()*1.5 + 0.25 // links differ
			r := p.rates
			w.net.links[i][j] = link{
				delay: int64(f * float64(p.delay)), jitter: int64(f * float64(p.jitter)),
				rates: rates{f / 1.75 * r.loss, r.duplicate, r.reorder, r.corrupt, r.replay},
			}
		}
	}
	return w
}

// populate gives every node its clients and boots it.
func (w *world) populate() {
	for _, n := range w.nodes {
		for i := range w.plan.clients {
			n.clients = append(n.clients, newClient(n, i))
		}
	}
	for _, n := range w.nodes {
		n.drift = (w.dice.Float64() - 0.5) * 1e-2
		n.boot()
	}
}

// settleTime is the time within which the next operation must have completed, from the
// last fault or the last completion on: the give-up time of a session that was unlucky to
// the end, that of the one before it on the same peer, and the longest pauses between
// retransmissions. Of a message, each frame at the end of a window may be lost.
func (w *world) settleTime() int64 {
	c, _ := w.plan.session.WithDefaults() // it is valid, since engines have accepted it
	lost := int64(4)
	if w.plan.letters > 0 {
		lost = session.MaxWindow
	}
	return 3*int64(c.GiveUp) + lost*int64(c.RTOMax) + second
}

// run runs the world and judges it.
func (w *world) run() {
	failed := func() bool { return w.failure != nil }
	w.populate()
	if w.plan.story != nil {
		w.live()
		w.until(w.troublesEnd(), failed)
	} else {
		w.storm(failed)
	}
	if failed() {
		return
	}
	w.appease()
	w.settle(failed)
	if w.plan.story != nil && !failed() {
		w.until(w.now+w.aftermath()+keeps, failed) // outcomes that can still become known do
		w.finale()
		w.settle(failed)
	}
	w.close()
	if !failed() {
		w.check()
	}
}

// storm makes clients post and faults strike at random.
func (w *world) storm(failed func() bool) {
	for _, n := range w.nodes {
		for _, c := range n.clients {
			w.at(w.now+w.dice.exp(w.plan.think), c.act)
		}
	}
	w.wreak()
	for w.now < w.plan.end && !failed() {
		w.until(min(w.now+w.plan.end/8, w.plan.end), failed)
		w.checkLimits()
	}
}

// settle waits for everything to complete. One operation completes within each
// settleTime: a queue of long messages on a slow path may take several of them.
func (w *world) settle(failed func() bool) {
	for w.pending > 0 && !failed() {
		before := w.pending
		w.until(w.now+w.settleTime(), func() bool { return w.pending < before || failed() })
		if w.pending == before && !failed() {
			w.fail("%d operations are stuck, such as %v", w.pending, w.stuck())
		}
	}
}

// stuck returns an operation that has not completed though its poster lives.
func (w *world) stuck() *op {
	for _, n := range w.nodes {
		for _, c := range n.clients {
			for _, o := range c.ops() {
				if !o.done {
					return o
				}
			}
		}
	}
	return nil
}

// retires is the time after which a target has retired a session that its initiator
// never closed, and four give-up times more, for which initiators ask.
const retires = 2 * minute

// close closes all sessions in good order, and lets so much time pass that
// those whose initiator died are retired as well.
func (w *world) close() {
	failed := func() bool { return w.failure != nil }
	if w.plan.cancels > 0 || w.plan.letters > 0 {
		w.until(w.now+clearing, failed) // the outcomes of the latest cancelled operations are still to come
	}
	for _, n := range w.nodes {
		for _, c := range n.clients {
			for _, p := range c.peers {
				p.eng.Close()
			}
		}
		n.wake(w.now)
	}
	w.until(w.now+100*millisecond, failed)
	w.until(w.now+retires+4*int64(w.plan.session.GiveUp), failed)
	if !failed() {
		w.checkEmpty()
	}
}

// use counts the operations on a word, and those of them that are under way or
// of unknown outcome.
type use struct{ all, open int }

func (w *world) use(o *op, all, open int) {
	id := wordID{o.peer.target.index, o.region, o.first}
	u := w.words[id]
	w.words[id] = use{u.all + all, u.open + open}
}

// note remembers an operation that was posted.
func (w *world) note(o *op) {
	w.use(o, 1, 1)
	if o.fenced {
		w.tap.fences[wordID{o.peer.target.index, fenceRegion, o.first}] = o
	}
}

func (w *world) count(c counter) { w.counts[c]++ }

// fail records the first violation of an invariant; the run ends there.
func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf("at %.6f ms: "+format, append([]any{float64(w.now) / float64(millisecond)}, args...)...)
		w.trace.event("FAILED: %v", w.failure)
	}
}
