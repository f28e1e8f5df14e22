// SPDX-License-Identifier: Apache-2.0

package engine

import "sync/atomic"

// Group is the set of engines behind one interface, one per queue. They share
// nothing on the data path. Packets cross between them in three cases only: when
// the network delivers a session's frames on another queue than the one that
// serves the session, when sessions are spread ([Config.Spread]), and when a node talks
// to itself.
//
// There may be engines for further queues of the interface in other processes: see
// [Config.Outside] and [Engine.Deliver].
type Group struct {
	engines  []*Engine
	first    int                       // the queue of engines[0]
	passages []atomic.Pointer[passage] // from engine i to j at i*len(engines)+j; made by i at first use
	buffers  chan []byte               // for packets on their way to an inbox
	outside  func(packet []byte, queue int) bool
}

// AnyQueue stands for every queue outside of the group.
const AnyQueue = -1

// passing is the greatest number of packets on their way from one engine to another, or
// by Deliver. Further ones are dropped, as in a network, and sent again.
const passing = 256

// NewGroup joins engines; engines[i] serves the i-th queue from that of engines[0] on.
func NewGroup(engines []*Engine) *Group {
	g := &Group{engines: engines, first: engines[0].cfg.Queue, buffers: make(chan []byte, passing),
		outside:  engines[0].cfg.Outside,
		passages: make([]atomic.Pointer[passage], len(engines)*len(engines))}
	for range passing {
		g.buffers <- nil // allocated at first use: most groups never pass a packet
	}
	for i, e := range engines {
		e.group, e.member = g, i
		e.pairs, e.cfg.Life = engines[0].pairs, engines[0].cfg.Life
	}
	if engines[0].cfg.Spread {
		engines[0].pairs.spread = engines
	}
	return g
}

// pass copies a packet to the engine of a queue, which does not pass it on again. It
// returns false when there is no such engine. The thread is that of from.
func (g *Group) pass(from *Engine, packet []byte, queue int) bool {
	return g.carry(from, packet, queue, true)
}

// carry is pass for a packet that may not have been looked at yet.
func (g *Group) carry(from *Engine, packet []byte, queue int, passedOn bool) bool {
	if g == nil {
		return false
	}
	at := queue - g.first
	if at < 0 || at >= len(g.engines) {
		return g.outside != nil && g.outside(packet, queue)
	}
	g.put(from, g.engines[at], packet, passedOn)
	return true
}

// put copies a packet from one engine to another, if there is room. An engine that sleeps
// is woken by the first packet, and not again before it has looked.
func (g *Group) put(from, to *Engine, packet []byte, passedOn bool) {
	at := &g.passages[from.member*len(g.engines)+to.member]
	x := at.Load()
	if x == nil {
		x = &passage{}
		at.Store(x)
	}
	if x.send(packet, passedOn) {
		to.alertOnce()
	}
}

// crowded reports whether an engine has sent itself so much that its sessions have to
// wait until it has taken that, in its next round. A packet keeps its place while it is
// handled, and may be a hello, whose answer needs a place at once: so answers have half
// of the ring. If hellos filled it, each answer would be dropped, and no session would
// ever begin. A paused engine takes nothing, so nothing waits for it.
func (g *Group) crowded(e *Engine) bool {
	if g == nil || e.paused {
		return false
	}
	x := g.passages[e.member*len(g.engines)+e.member].Load()
	return x != nil && x.crowded()
}

// takePassed hands f the packets that engines of the group have passed to one.
func (g *Group) takePassed(to *Engine, f func(p *parcel)) (n int) {
	for from := range g.engines {
		if x := g.passages[from*len(g.engines)+to.member].Load(); x != nil {
			n += x.take(f)
		}
	}
	return n
}

// Deliver hands the engine a copy of a packet that another process or thread has received
// for it, if there is room. A packet that is passedOn goes no further from here; any
// other one is as good as received from the port, and may be for another engine. Any
// goroutine may call it.
func (e *Engine) Deliver(packet []byte, passedOn bool) {
	g := e.group
	select {
	case b := <-g.buffers:
		if cap(b) < len(packet) {
			b = make([]byte, max(len(packet), packetLen))
		}
		b = b[:copy(b[:cap(b)], packet)]
		select {
		case e.inbox <- parcel{b, passedOn}:
			e.alertOnce()
		default:
			g.recycle(b)
		}
	default:
	}
}

// alertOnce is Alert for packets, many of which come before the engine looks.
func (e *Engine) alertOnce() {
	if !e.mail.Load() {
		e.mail.Store(true)
	}
	e.wakeIfAsleep()
}

// spread passes a packet to every other engine. It
// returns false when there is no other.
func (g *Group) spread(packet []byte, from *Engine) bool {
	if g == nil {
		return false
	}
	spread := g.outside != nil && g.outside(packet, AnyQueue)
	for _, e := range g.engines {
		if e != from {
			g.put(from, e, packet, true)
			spread = true
		}
	}
	return spread
}

func (g *Group) recycle(b []byte) { g.buffers <- b }
