// SPDX-License-Identifier: Apache-2.0

package sim

// wreak plans the incidents of the run. Each ends by itself, the last of them
// with the plan.
func (w *world) wreak() {
	in := w.plan.incidents
	each := func(n int, strike func(length int64)) {
		for range n {
			length := min(w.dice.exp(pick(w.dice, 5*millisecond, 50*millisecond, 500*millisecond)), w.plan.end/2)
			w.at(w.dice.Int64N(w.plan.end-length), func() { strike(length) })
		}
	}
	each(in.partitions, w.partition)
	each(in.clogs, w.clog)
	each(in.stalls, w.stall)
	each(in.crashes, w.crash)
	each(in.leaps, w.leap)
	each(in.deregistrations, w.deregister)
	each(in.guestDeaths, w.guestDeath)
}

func (w *world) anyNode() *node { return w.nodes[w.dice.IntN(len(w.nodes))] }

// twoNodes returns two different nodes.
func (w *world) twoNodes() (a, b int) {
	a = w.dice.IntN(len(w.nodes))
	b = (a + 1 + w.dice.IntN(len(w.nodes)-1)) % len(w.nodes)
	return a, b
}

// partition cuts links: one direction, both, or everything of one node.
func (w *world) partition(length int64) {
	cut := w.ways()
	w.count(partitions)
	w.trace.event("partition of links %v for %d ms", cut, length/millisecond)
	for _, way := range cut {
		w.net.links[way[0]][way[1]].cut++
		w.at(w.now+length, func() {
			w.net.links[way[0]][way[1]].cut--
			w.net.echo(way[0], way[1])
		})
	}
}

// clog makes the packets of a link wait.
func (w *world) clog(length int64) {
	a, b := w.twoNodes()
	w.count(clogs)
	w.trace.event("clog from %d to %d for %d ms", a, b, length/millisecond)
	l := &w.net.links[a][b]
	l.clogged = max(l.clogged, w.now+length)
}

// stall keeps a node off its core.
func (w *world) stall(length int64) {
	n := w.anyNode()
	w.count(stalls)
	w.trace.event("stall of %v for %d ms", n, length/millisecond)
	n.stalled = max(n.stalled, w.now+length)
}

// crash ends a node and starts it again, with its memory or without.
func (w *world) crash(length int64) {
	n := w.anyNode()
	if !n.up {
		return
	}
	w.count(crashes)
	w.excuse(n.index, -1, w.now+length)
	w.trace.event("crash of %v for %d ms", n, length/millisecond)
	n.crash()
	from, fresh := w.now, w.dice.chance(0.5)
	w.at(w.now+length, func() {
		if fresh {
			w.count(restartsFresh)
			for _, r := range n.regions {
				r.renew(from)
			}
		} else {
			w.count(restartsKept)
		}
		if w.plan.roams {
			w.roam(n)
		}
		n.boot()
		for i := range w.nodes {
			w.net.echo(i, n.index)
			w.net.echo(n.index, i)
		}
		w.trace.event("restart of %v, memory fresh: %t", n, fresh)
	})
}

// leap moves one node's clock forward, by up to minutes, or makes it run at
// another speed from its next life on.
func (w *world) leap(int64) {
	n := w.anyNode()
	d := pick(w.dice, w.dice.between(1, 20)*millisecond, w.dice.between(1, 10)*second, w.dice.between(100, 200)*second)
	w.count(clockLeaps)
	w.trace.event("clock of %v leaps %d ms", n, d/millisecond)
	n.leap(d)
}

// deregister makes a region's key unknown for a while.
func (w *world) deregister(length int64) {
	n := w.anyNode()
	r := n.regions[w.dice.IntN(hiddenRegion)]
	if !n.up || r.reg == nil {
		return
	}
	w.count(deregistrations)
	w.trace.event("%s of %v deregistered for %d ms", regionName(r.kind), n, length/millisecond)
	r.deregister()
	w.at(w.now+length, func() {
		if n.up {
			r.register()
		}
	})
}

// appease ends all faults.
func (w *world) appease() {
	w.trace.event("faults end")
	w.calm = true
	w.plan.hiccups = 0
	for i := range w.net.links {
		w.net.down[i].limit = 0
		for j := range w.net.links[i] {
			l := &w.net.links[i][j]
			l.rates, l.jitter, l.cut, l.clogged = rates{}, 0, 0, 0
		}
	}
	for _, n := range w.nodes {
		for _, p := range n.ports {
			p.rxLimit = 1 << 20
		}
		for _, b := range n.boxes {
			if b != nil {
				b.drain()
			}
		}
		n.wake(w.now)
	}
}
