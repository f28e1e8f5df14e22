// SPDX-License-Identifier: Apache-2.0

package engine

// Group is the set of engines behind one interface, one per queue. They share
// nothing on the data path. Packets cross between them in two cases only: when
// the network delivers a session's frames on another queue than the one that
// serves the session, and when a node talks to itself.
type Group struct {
	engines []*Engine
	buffers chan []byte // for packets on their way to another inbox
}

// passing is the most packets that can be on their way between the engines of a group.
// Any more are dropped, as in a network, and sent again.
const passing = 256

// NewGroup joins engines; engines[i] serves queue i.
func NewGroup(engines []*Engine) *Group {
	g := &Group{engines: engines, buffers: make(chan []byte, passing)}
	for range passing {
		g.buffers <- nil // allocated at first use: most groups never pass a packet
	}
	for _, e := range engines {
		e.group = g
		e.pairs, e.cfg.Life = engines[0].pairs, engines[0].cfg.Life
	}
	return g
}

// pass copies a packet into the inbox of the engine of a queue. It returns false
// when there is no such engine.
func (g *Group) pass(packet []byte, queue int) bool {
	if g == nil || queue >= len(g.engines) {
		return false
	}
	e := g.engines[queue]
	select {
	case b := <-g.buffers:
		if cap(b) < len(packet) {
			b = make([]byte, max(len(packet), 2048))
		}
		b = b[:copy(b[:cap(b)], packet)]
		select {
		case e.inbox <- b:
			e.mail.Store(true)
			e.wakeIfAsleep()
		default:
			g.recycle(b)
		}
	default:
	}
	return true
}

// spread passes a packet to every engine but the one that has it. It returns
// false when there is no other.
func (g *Group) spread(packet []byte, from *Engine) bool {
	if g == nil || len(g.engines) < 2 {
		return false
	}
	for i, e := range g.engines {
		if e != from {
			g.pass(packet, i)
		}
	}
	return true
}

func (g *Group) recycle(b []byte) { g.buffers <- b }
