// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/executor"
	"github.com/xdpfab/xdpfab/internal/memory"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// poison fills result buffers before their use, and packets after it.
const poison = 0xa5

// endpoints is how many endpoint numbers a node accepts.
const endpoints = 4

// node is one machine: memory that may outlive a crash, and, while it is up, an
// engine for each of its queues.
type node struct {
	signalled []*op // writes with a signal that has not come yet
	w         *world
	index     int
	link      wire.Link // addresses of its own, as Local
	regions   [numRegions]*region
	clients   []*client

	gateway gateway // its first hop, in a routed world
	steer   uint64  // which flows go to which queue

	life    int    // crashes so far
	lasting uint64 // life of what outlives its processes, 0 for nothing
	up      bool
	eng     *engine.Engine   // of the first queue
	engs    []*engine.Engine // by queue
	execs   []*executor.Executor
	mems    []*memory.Memory
	ports   []*simPort
	table   *mr.Table
	forgets []int64 // when it may have forgotten every session
	deaths  []int64 // when it crashed
	boxes   [endpoints]*mailbox
	guest   *guest // that has some of the memory; nil for none
	// callee answers the calls of a session; nil for a node that has no function
	foreign bool // the memory counts as that of another program, as a guest's does
	// function answers the calls of a session in the guest; nil if it has none
	function func(g *guest, told func()) session.Callee
	callee   func(endpoint uint16, from wire.Addr, party session.Party, ended func()) session.Callee

	stalled  int64 // until then it is not stepped
	shut     int64 // until then its endpoints are closed
	frozen   []span
	frames   allowance
	asked    int   // places for events that were asked for
	refused  bool  // there was none for one of them, in this life
	places   int   // that are taken
	busy     int64 // until then the last step takes
	stepAt   int64 // when the next step is due; 0 = none
	stepping bool  // a step is being made
	looks    int   // at the ports in this step
	until    int64 // the time that the latest look showed, which may be ahead of the world's
	coming   []*arriving
	again    bool  // another one must follow, whatever the first one did
	posted   []*op // since the last step, to lives that were over
	skew     int64 // of its clock, ns
	drift    float64
}

// span is an interval of virtual time, both ends included.
type span struct{ from, to int64 }

func (n *node) String() string { return fmt.Sprintf("node %d.%d", n.index, n.life) }

func newNode(w *world, index int) *node {
	n := &node{w: w, index: index}
	mac := wire.MAC{2, 0, 0, 0, byte(index >> 8), byte(index)}
	n.link = wire.Link{Kind: w.plan.encap, Local: mac}
	switch w.plan.encap {
	case wire.UDP4:
		n.link.LocalIP = netip.AddrFrom4([4]byte{10, 0, byte((index + 1) >> 8), byte(index + 1)})
	case wire.UDP6:
		n.link.LocalIP = netip.AddrFrom16([16]byte{0: 0xfd, 14: byte((index + 1) >> 8), 15: byte(index + 1)})
	}
	for i := range n.regions {
		n.regions[i] = newRegion(n, i)
	}
	w.net.byMAC[mac], w.net.byIP[n.link.LocalIP] = n, n
	n.gateway.move(index)
	return n
}

// linkTo returns the path from this node to another.
func (n *node) linkTo(to *node) wire.Link {
	l := n.link
	l.Remote, l.RemoteIP = to.link.Local, to.link.LocalIP
	if n.w.plan.routed {
		l.Remote = n.gateway.mac
	}
	return l
}

// clock is the node's own monotonic clock, which may run fast, slow or ahead.
func (n *node) clock() int64 {
	now := max(n.w.now, n.until)
	return n.skew + now + int64(n.drift*float64(now))
}

// boot begins a life: new engines, which know no sessions.
func (n *node) boot() {
	w, p := n.w, &n.w.plan
	n.table, n.engs, n.execs, n.mems, n.ports = mr.NewTable(), nil, nil, nil, nil
	n.skew = second + w.dice.Int64N(second) - int64(n.drift*float64(w.now))
	n.refused = false
	n.openBoxes()
	var secret [32]byte
	if p.queues > 1 {
		binary.LittleEndian.PutUint64(secret[:], w.dice.Uint64())
	}
	n.engines(secret, 0)
	n.eng = n.engs[0]
	engine.NewGroup(n.engs)
	if n.attach(); n.guest != nil {
		n.guest.attendTo()
	}
	for _, r := range n.regions {
		r.register()
	}
	n.up, n.stalled, n.busy, n.stepAt, n.places = true, 0, 0, 0, 0
	for _, c := range n.clients {
		c.boot()
	}
	n.wake(w.now)
}

// engines makes the engines of a life, 0 for a random one.
func (n *node) engines(secret [32]byte, life uint64) {
	w, p := n.w, &n.w.plan
	for q := range max(p.queues, 1) {
		port, mem := newPort(n), memory.New(n.table)
		cfg := p.session
		cfg.Features = n.features()
		exec, err := executor.New(mem, p.mtu, p.buffers)
		if err != nil {
			panic(err) // the plan is at fault: no executor can be like this
		}
		serves := exec
		if n.foreign {
			serves = exec.WithMemory(mem)
		}
		eng, err := engine.New(engine.Config{
			Port: port, Local: n.link.Local, MTU: p.mtu, Session: cfg, Queue: q, Secret: secret, Life: life,
			Resident: n.lasting,
			Sessions: p.sessions, Buffers: p.buffers, Clock: n.clock, Random: w.random, Accept: n.accept,
			Events: n.events, Inflow: n.inflow, Attendant: n.attendant, Callee: n.callee,
			Padding: n.pads, Narrow: n.narrowed, Widened: n.widened,
			Serve: func(now int64, p session.TargetParams) engine.Served { return serves.Begin(now, p, nil) },
		})
		if err != nil {
			panic(err) // the plan is at fault: no engine can be like this
		}
		n.engs, n.execs, n.mems, n.ports = append(n.engs, eng), append(n.execs, exec), append(n.mems,
			mem), append(n.ports, port)
	}
}

// features are the extensions that this life of the node knows: none, some, or all that
// there will ever be. So nodes of all ages meet, and a restart may be an upgrade.
func (n *node) features() wire.Features {
	const now = wire.FeatureMemory | wire.FeatureMessages | wire.FeatureUnordered | wire.FeatureNotices |
		wire.FeatureTaggedAtomics | wire.FeatureRiders | wire.FeaturePadding | wire.FeatureEchoes |
		wire.FeatureDelays | wire.FeatureLongProbes | wire.FeatureSignals
	ages := [...]wire.Features{wire.FeatureUnordered | wire.FeatureMemory, ^wire.Features(0), 0, now}
	if n.w.plan.letters > 0 { // most nodes know messages
		ages = [...]wire.Features{now, ^wire.Features(0), wire.FeatureMessages, wire.FeatureUnordered}
	}
	if n.w.plan.attends != 0 { // all know that a target may wait
		ages = [...]wire.Features{now, ^wire.Features(0), now &^ wire.FeatureUnordered, now &^ wire.FeatureDelays}
	}
	return ages[(n.index+n.life)%len(ages)]
}

// pads reports whether the node wants requests to be as long as their answers.
func (n *node) pads() bool { return n.index%2 == 0 }

// accept answers the hello for an endpoint number.
func (n *node) accept(e uint16, _ uint64) wire.HelloStatus {
	if e < endpoints && n.w.now >= n.shut && (n.guest != nil || n.w.plan.attends == 0) {
		return wire.HelloAccepted
	}
	return wire.HelloNoEndpoint
}

// crash ends a life between two steps. What was in the rings is gone.
func (n *node) crash() {
	n.up = false
	n.life++
	n.forgets, n.deaths = append(n.forgets, n.w.now), append(n.deaths, n.w.now)
	n.boxes, n.posted = [endpoints]*mailbox{}, nil
	for _, c := range n.clients {
		c.crash()
	}
	if n.guest != nil {
		n.guest.detach()
	}
	for _, r := range n.regions {
		r.deregister()
	}
	for _, m := range n.mems {
		m.Close()
	}
	n.eng, n.engs, n.execs, n.mems, n.ports, n.table = nil, nil, nil, nil, nil, nil
}

// deliver takes a packet off the wire.
func (n *node) deliver(b []byte) {
	w := n.w
	w.count(packets)
	switch {
	case !n.up:
		w.count(toTheDead)
	case !n.ports[n.queueOf(b)].deliver(b):
		w.count(rxOverflow)
	default:
		w.trace.packet('<', n, b)
		w.tap.proofs.arrived(n, b)
		if !n.stepping {
			n.wake(w.now)
		}
	}
}

// wake ensures that the node is stepped at time t, or as soon afterwards as
// possible.
func (n *node) wake(t int64) {
	if !n.up {
		return
	}
	t = max(t, n.busy, n.stalled, n.w.now)
	if n.stepAt != 0 && n.stepAt <= t {
		return
	}
	n.stepAt = t
	life := n.life
	n.w.at(t, func() {
		if n.life == life && n.up && n.stepAt == t {
			n.stepAt = 0
			n.step()
		}
	})
}

// checkEvery is the number of steps, of any node, between two checks of the
// engines' state.
const checkEvery = 16

// A step costs the node's core this much time, in nanoseconds.
const (
	stepCost = 300
	workCost = 100 // per packet or operation, if the plan does not say
)

// step makes one round of the engine and plans the next.
func (n *node) step() {
	w := n.w
	if w.now < n.stalled {
		n.wake(n.stalled)
		return
	}
	if p := w.plan.hiccups; p > 0 && w.dice.chance(p) {
		w.count(stalls)
		n.stalled = w.now + w.dice.between(1, 8*millisecond)
		n.wake(n.stalled)
		return
	}
	w.count(steps)
	n.stepping, n.again, n.looks, n.until = true, false, 0, w.now
	work, short, waiting := 0, false, false
	for i := range n.engs {
		q := (i + w.counts[steps]) % len(n.engs)
		n.ports[q].short = false
		work += n.engs[q].Step()
		short = short || n.ports[q].short
	}
	n.stepping = false
	n.lookAtSignals()
	for _, o := range n.posted {
		o.astray = !o.done && o.meetsFormer()
	}
	n.posted = n.posted[:0]
	n.checkTried()
	if w.counts[steps]%checkEvery == 0 {
		n.check()
	}
	for _, p := range n.ports {
		waiting = waiting || len(p.rx) > 0
	}
	cost := int64(workCost)
	if w.plan.work != 0 {
		cost = w.plan.work
	}
	n.busy = max(w.now, n.until) + stepCost + cost*int64(work)
	switch {
	case waiting, n.again:
		n.wake(n.busy)
	case short:
		n.wake(n.busy + 10*microsecond)
	case work > 0 || !w.plan.leaps:
		n.wake(n.busy + w.plan.tick)
	default:
		n.sleep()
	}
}

// sleep ensures that the node is stepped when one of its engines has something to do
// by itself, or somewhat later, as on a busy core.
func (n *node) sleep() {
	due := int64(0)
	for _, e := range n.engs {
		if d := e.NextDue(); d != 0 && (due == 0 || d < due) {
			due = d
		}
	}
	if due != 0 {
		n.wake(max(n.busy, n.when(due)) + n.w.dice.Int64N(n.w.plan.tick))
	}
}

// when returns the world's time at which the node's clock shows t.
func (n *node) when(t int64) int64 {
	return int64(math.Ceil(float64(t-n.skew) / (1 + n.drift)))
}

// leap moves the node's clock forward.
func (n *node) leap(d int64) {
	n.skew += d
	if d >= forgetful {
		n.forgets = append(n.forgets, n.w.now)
	}
	n.wake(n.w.now)
}
