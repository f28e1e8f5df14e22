// SPDX-License-Identifier: Apache-2.0

package engine

// Group is the set of engines behind one interface, one per queue. They share
// nothing on the data path. Packets cross between them in two cases only: when
// the network delivers a session's frames on another queue than the one that
// serves the session, and when a node talks to itself.
//
// There may be engines for further queues of the interface in other processes: see
// [Config.Outside] and [Engine.Deliver].
type Group struct {
	engines []*Engine
	first   int         // the queue of engines[0]
	buffers chan []byte // for packets on their way to another inbox
	outside func(packet []byte, queue int) bool
}

// parcel is a packet in an inbox.
type parcel struct {
	packet   []byte
	passedOn bool // by an engine that knows better: it goes no further
}

// AnyQueue stands for every queue outside of the group.
const AnyQueue = -1

// passing is the most packets that can be on their way between the engines of a group.
// Any more are dropped, as in a network, and sent again.
const passing = 256

// NewGroup joins engines; engines[i] serves the i-th queue from that of engines[0] on.
func NewGroup(engines []*Engine) *Group {
	g := &Group{engines: engines, first: engines[0].cfg.Queue, buffers: make(chan []byte, passing), outside: engines[0].cfg.Outside}
	for range passing {
		g.buffers <- nil // allocated at first use: most groups never pass a packet
	}
	for _, e := range engines {
		e.group = g
		e.pairs, e.cfg.Life = engines[0].pairs, engines[0].cfg.Life
	}
	return g
}

// pass copies a packet into the inbox of the engine of a queue, which does not pass it on
// again. It returns false when there is no such engine.
func (g *Group) pass(packet []byte, queue int) bool { return g.carry(packet, queue, true) }

// carry is pass for a packet that has been looked at, or not yet.
func (g *Group) carry(packet []byte, queue int, passedOn bool) bool {
	if g == nil {
		return false
	}
	at := queue - g.first
	if at < 0 || at >= len(g.engines) {
		return g.outside != nil && g.outside(packet, queue)
	}
	g.put(g.engines[at], packet, passedOn)
	return true
}

// put copies a packet into an engine's inbox, if there is room.
func (g *Group) put(e *Engine, packet []byte, passedOn bool) {
	select {
	case b := <-g.buffers:
		if cap(b) < len(packet) {
			b = make([]byte, max(len(packet), 2048))
		}
		b = b[:copy(b[:cap(b)], packet)]
		select {
		case e.inbox <- parcel{b, passedOn}:
			e.mail.Store(true)
			e.wakeIfAsleep()
		default:
			g.recycle(b)
		}
	default:
	}
}

// Deliver hands the engine a copy of a packet that another process or thread has received
// for it, if there is room. A packet that is passedOn goes no further from here; any
// other one is as good as received from the port, and may be for another engine. Any
// goroutine may call it.
func (e *Engine) Deliver(packet []byte, passedOn bool) { e.group.put(e, packet, passedOn) }

// spread passes a packet to every engine but the one that has it. It returns
// false when there is no other.
func (g *Group) spread(packet []byte, from *Engine) bool {
	if g == nil {
		return false
	}
	spread := g.outside != nil && g.outside(packet, AnyQueue)
	for _, e := range g.engines {
		if e != from {
			g.put(e, packet, true)
			spread = true
		}
	}
	return spread
}

func (g *Group) recycle(b []byte) { g.buffers <- b }
