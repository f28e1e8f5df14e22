// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/xdpfab/xdpfab/internal/wire"
)

// ways draws links to cut: one direction, both, or everything of one node.
func (w *world) ways() (cut [][2]int) {
	a, b := w.twoNodes()
	switch w.dice.IntN(3) {
	case 0:
		return [][2]int{{a, b}}
	case 1:
		return [][2]int{{a, b}, {b, a}}
	}
	for i := range w.nodes {
		if i != a {
			cut = append(cut, [2]int{a, i}, [2]int{i, a})
		}
	}
	return cut
}

// cutOff cuts links until a time, while earlier frames keep arriving some other
// way.
func (w *world) cutOff(until int64) {
	w.count(partitions)
	for _, way := range w.ways() {
		w.trace.event("cut from %d to %d", way[0], way[1])
		l := &w.net.links[way[0]][way[1]]
		l.cut++
		w.excuse(way[0], way[1], until)
		w.at(until, func() { l.cut-- })
		if w.dice.chance(0.5) {
			w.sustain(l, w.nodes[way[1]], until)
		}
	}
}

// sustain makes old frames arrive at a target as long as a link is cut.
func (w *world) sustain(l *link, to *node, until int64) {
	const most, pause = 60, 30 * second
	for t, i := w.now, 0; t < until && i < most; t, i = t+w.dice.between(pause/2, 2*pause), i+1 {
		w.at(t, func() {
			if len(l.old) > 0 {
				w.revenant(to, l.old[w.dice.IntN(len(l.old))], w.now)
			}
		})
	}
}

// haunt makes some of the frames ever sent arrive again, after any time. Those
// that never arrived are the most harmful: they may have been given up.
func (w *world) haunt() {
	d := w.dice
	for i := range w.net.links {
		for j := range w.net.links[i] {
			l, to := &w.net.links[i][j], w.nodes[j]
			for _, b := range l.stuck {
				if d.chance(0.5) {
					w.revenant(to, b, w.now+d.scale(millisecond, pick(d, second, 2*minute, 3*hour)))
				}
			}
			l.stuck = l.stuck[:0]
			if len(l.old) > 0 && d.chance(0.5) {
				for range d.IntN(6) {
					w.revenant(to, l.old[d.IntN(len(l.old))], w.now+d.scale(millisecond, pick(d, second, 3*hour)))
				}
			}
		}
	}
}

// recall makes a hello that brings its cookie arrive again, often while the cookie
// is still good: the session that it began may have ended since, and another one
// begun.
func (w *world) recall(to *node, packet []byte) {
	if w.plan.story == nil {
		return
	}
	frame, _, _ := wire.Decap(packet)
	h, payload, reason := wire.Parse(frame)
	var m wire.HelloMsg
	if reason != wire.ReasonOK || h.Type != wire.Hello || m.Parse(payload) != wire.ReasonOK ||
		m.Cookie == (wire.Cookie{}) {
		return
	}
	for range w.dice.IntN(3) {
		w.revenant(to, packet, w.now+w.dice.scale(100*microsecond, 25*second))
	}
}

// revenant makes a packet arrive again at a time.
func (w *world) revenant(to *node, packet []byte, at int64) {
	w.count(replayed)
	w.at(at, func() {
		if w.calm {
			return
		}
		b := append([]byte(nil), packet...)
		to.readdress(b)
		to.earn(4)
		to.deliver(b)
	})
}

// freeze keeps a node off its core until a time, soon after its clients have posted
// something: it may still be on its way, or its answer lie in the ring. A node with
// manual progress is frozen as long as it has nothing to do, and finds work when it wakes
// up.
func (w *world) freeze(until int64, manual bool) {
	n := w.anyNode()
	for _, c := range n.clients {
		c.burst()
	}
	w.at(w.now+w.dice.between(0, 4*w.plan.delay), func() {
		w.count(freezes)
		w.trace.event("%v is frozen, for want of work: %t", n, manual)
		n.stalled = max(n.stalled, until)
		n.frozen = append(n.frozen, span{w.now, until})
		w.excuse(n.index, -1, until)
	})
	w.at(until, n.earnBacklog)
	if manual {
		w.at(until-1, func() {
			for _, c := range n.clients {
				c.burst()
			}
		})
	}
}

// move gives a node's gateway another address. When packets to the former one are
// lost, its peers are led to the new one after a while.
func (w *world) move() {
	n := w.anyNode()
	w.count(moves)
	if w.dice.chance(0.5) {
		n.gateway.takeOver(n.index)
		w.trace.event("gateway of %v is taken over: now %x", n, n.gateway.mac)
		return
	}
	n.gateway.move(n.index)
	w.trace.event("gateway of %v moves: now %x", n, n.gateway.mac)
	w.lead(n, func(from, to *node) bool { return from == n }, 0)
}

// roam gives a node that is down another MAC address; it keeps its IP address, by
// which others find it.
func (w *world) roam(n *node) {
	w.count(moves)
	delete(w.net.byMAC, n.link.Local)
	n.link.Local[2]++
	w.net.byMAC[n.link.Local] = n
	w.trace.event("node %d comes back as %x", n.index, n.link.Local)
	w.lead(n, func(_, to *node) bool { return to == n }, 0)
}

// lead shows peers the new way after a while, when their nodes have noticed that a node
// moved. Until then, and some time longer, it may be out of reach.
func (w *world) lead(n *node, concerns func(from, to *node) bool, longer int64) {
	noticed := w.now + w.dice.scale(millisecond, 3*second)
	w.excuse(n.index, -1, noticed+longer)
	w.at(noticed, func() {
		for _, from := range w.nodes {
			for _, c := range from.clients {
				for _, p := range c.peers {
					if concerns(from, p.target) {
						setLink(p.eng, from.linkTo(p.target))
					}
				}
			}
			from.wake(w.now)
		}
	})
}

// shutEndpoints closes the endpoints of a node until a time: sessions are refused,
// and existing ones may end.
func (w *world) closeEndpoints(until int64) {
	n := w.anyNode()
	if !n.up {
		return
	}
	w.count(shuts)
	end := w.plan.ends && w.dice.chance(0.5)
	w.trace.event("%v closes its endpoints, and sessions: %t", n, end)
	n.shut = max(n.shut, until)
	w.excuse(n.index, -1, until)
	for _, e := range n.engs {
		for i := range uint16(endpoints) {
			if end {
				e.EndTargets(i)
			}
		}
	}
	n.wake(w.now)
}

// renewRegion removes a region, and registers it again with other memory and the
// same key.
func (w *world) renewRegion(length int64) {
	n := w.anyNode()
	r := n.regions[w.dice.IntN(fenceRegion)]
	if !n.up || r.reg == nil {
		return
	}
	w.count(deregistrations)
	w.trace.event("%s of %v deregistered, to be made anew", regionName(r.kind), n)
	r.deregister()
	since := w.now
	w.at(w.now+length, func() {
		r.renew(since)
		if n.up {
			r.register()
		}
	})
}

// finale makes every client post to every peer once more: nothing prevents success
// now.
func (w *world) finale() {
	for _, n := range w.nodes {
		for _, c := range n.clients {
			for _, p := range c.peers {
				o := &op{peer: p, region: arrayRegion, count: 1, datatype: w.typeOf(arrayRegion, 0),
					verb: wire.VerbFetch, code: wire.OpRead}
				if !c.post(o) {
					w.fail("%v: the submission ring is full in the end", p)
				}
			}
		}
		n.wake(w.now)
	}
}
