// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// poison fills result buffers before, and packets after, their time.
const poison = 0xa5

// endpoints is how many endpoint numbers a node accepts.
const endpoints = 4

// node is one machine: memory that may outlive a crash, and, while it is up, an
// engine.
type node struct {
	w       *world
	index   int
	link    wire.Link // addresses of its own, as Local
	regions [numRegions]*region
	clients []*client
	wipes   []span // when its memory was lost

	life    int // crashes so far
	up      bool
	eng     *engine.Engine
	mem     *engine.Memory
	table   *mr.Table
	port    *simPort
	forgets int // occasions to have forgotten every session

	stalled int64 // until then it is not stepped
	busy    int64 // until then the last step takes
	stepAt  int64 // when the next step is due; 0 = none
	skew    int64 // of its clock, ns
	drift   float64
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
	w.net.byMAC[mac] = n
	return n
}

// linkTo returns the path from this node to another.
func (n *node) linkTo(to *node) wire.Link {
	l := n.link
	l.Remote, l.RemoteIP = to.link.Local, to.link.LocalIP
	return l
}

// clock is the node's own monotonic clock, which may run fast, slow or ahead.
func (n *node) clock() int64 {
	return n.skew + n.w.now + int64(n.drift*float64(n.w.now))
}

// boot begins a life: a new engine, whose memory of sessions is empty.
func (n *node) boot() {
	w, p := n.w, &n.w.plan
	n.table, n.port = mr.NewTable(), newPort(n)
	n.mem = engine.NewMemory(n.table)
	n.skew = second + w.dice.Int64N(second)
	var err error
	n.eng, err = engine.New(engine.Config{
		Port: n.port, Executor: n.mem, Local: n.link.Local, MTU: p.mtu, Session: p.session,
		Sessions: p.sessions, Buffers: p.buffers, Clock: n.clock, Random: w.random,
		Accept: func(e uint16) wire.HelloStatus {
			if e < endpoints {
				return wire.HelloAccepted
			}
			return wire.HelloNoEndpoint
		},
	})
	if err != nil {
		panic(err) // the plan asks for what no engine can be
	}
	engine.NewGroup([]*engine.Engine{n.eng})
	for _, r := range n.regions {
		r.register()
	}
	n.up, n.stalled, n.busy, n.stepAt = true, 0, 0, 0
	for _, c := range n.clients {
		c.boot()
	}
	n.wake(w.now)
}

// crash ends a life between two steps. What was in the rings is gone.
func (n *node) crash() {
	n.up = false
	n.life++
	n.forgets++
	for _, c := range n.clients {
		c.crash()
	}
	for _, r := range n.regions {
		r.deregister()
	}
	n.mem.Close()
	n.eng, n.mem, n.table, n.port = nil, nil, nil, nil
}

// deliver takes a packet off the wire.
func (n *node) deliver(b []byte) {
	w := n.w
	w.count(packets)
	switch {
	case !n.up:
		w.count(toTheDead)
	case !n.port.deliver(b):
		w.count(rxOverflow)
	default:
		w.trace.packet('<', n, b)
		n.wake(w.now)
	}
}

// wake sees to it that the node is stepped at time t, or as soon after as it
// can be.
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
	n.port.short = false
	work := n.eng.Step()
	cost := int64(workCost)
	if w.plan.work != 0 {
		cost = w.plan.work
	}
	n.busy = w.now + stepCost + cost*int64(work)
	switch {
	case len(n.port.rx) > 0:
		n.wake(n.busy)
	case n.port.short:
		n.wake(n.busy + 10*microsecond)
	default:
		n.wake(n.busy + w.plan.tick)
	}
}

// leap moves the node's clock forward.
func (n *node) leap(d int64) {
	n.skew += d
	if d >= forgetful {
		n.forgets++
	}
}

// word returns a word of the node's memory.
func (n *node) word(region, index int) uint64 {
	return binary.LittleEndian.Uint64(n.regions[region].bytes[8*index:])
}
