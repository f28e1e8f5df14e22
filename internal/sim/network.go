// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"net/netip"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// network is a star: every node has an uplink to, and a downlink from, one
// switch. Between each ordered pair of nodes there is a link with a delay and
// faults of its own.
type network struct {
	w     *world
	byMAC map[wire.MAC]*node
	byIP  map[netip.Addr]*node
	links [][]link // [from][to]
	down  []pipe   // by receiving node: where incast queues up
	// drop, if not nil, loses the packets for which it returns true.
	drop func(from, to *node, packet []byte) bool
	// arrived, if not nil, is told when a packet that arrives now was sent.
	arrived func(from, to *node, sent int64, packet []byte)
}

// pipe is a line of limited bandwidth with a queue before it.
type pipe struct {
	rate  float64 // bytes per nanosecond; 0 means unlimited
	limit int64   // nanoseconds of queue before packets are dropped; 0 means none
	free  int64   // when the last bit of the last packet has left
}

// wireOverhead is what a packet costs in addition to its bytes: FCS, preamble
// and gap.
const wireOverhead = 24

// put queues n bytes and returns when they have left, or false when the queue
// is full.
func (p *pipe) put(now int64, n int) (int64, bool) {
	if p.rate == 0 {
		return now, true
	}
	start := max(now, p.free)
	if p.limit > 0 && start-now > p.limit {
		return 0, false
	}
	p.free = start + int64(float64(n+wireOverhead)/p.rate)
	return p.free, true
}

// rates are the probabilities, per packet, of what a link does to it.
type rates struct {
	loss, duplicate, reorder, corrupt, replay float64
}

// captures is how many old packets a link remembers for replay.
const captures = 64

// echoes is how many of them arrive once more after a restart or a partition.
const echoes = 32

// link is one direction between two nodes.
type link struct {
	delay   int64 // ns, one way
	jitter  int64 // ns, at most, on top
	rates   rates
	cut     int   // partitions in force: nothing gets through while any is
	clogged int64 // until then packets wait
	narrow  int64 // until then long packets are dropped
	last    int64 // arrival of the last packet that kept its order
	old     [][]byte
	stuck   [][]byte // the latest requests that a partition kept from arriving
}

func newNetwork(w *world, n int) *network {
	net := &network{w: w, byMAC: map[wire.MAC]*node{}, byIP: map[netip.Addr]*node{}, links: make([][]link, n),
		down: make([]pipe, n)}
	for i := range net.links {
		net.links[i] = make([]link, n)
	}
	return net
}

// send takes a packet that left the NIC of a node at time t.
func (net *network) send(from *node, packet []byte, t int64) {
	w := net.w
	to := net.receiver(from, packet)
	if to == nil {
		w.count(misaddressed)
		return
	}
	l := &net.links[from.index][to.index]
	net.replay(l, to, packet)
	w.recall(to, packet)
	if net.drop != nil && net.drop(from, to, packet) {
		w.count(lost)
		return
	}
	switch {
	case l.cut > 0:
		w.count(cutOff)
		l.keep(w, packet)
		if w.dice.chance(l.rates.replay) { // delayed for long, rather than lost
			net.again(l, to, packet, pick(w.dice, 10*millisecond, 100*millisecond, 500*millisecond))
		}
		return
	case l.narrow > w.now && !w.calm && len(packet) > longestSure:
		w.count(lost)
		return
	case w.dice.chance(l.rates.loss):
		w.count(lost)
		return
	}
	net.carry(l, from, to, packet, t)
	if w.dice.chance(l.rates.duplicate) {
		w.count(duplicated)
		for range w.dice.between(1, 3) {
			net.carry(l, from, to, packet, t+w.dice.exp(20*l.delay))
		}
	}
}

// mostStuck is how many lost packets a link remembers.
const mostStuck = 12

// keep remembers a lost request.
func (l *link) keep(w *world, packet []byte) {
	if w.plan.story == nil || len(l.stuck) >= mostStuck {
		return
	}
	frame, _, _ := wire.Decap(packet)
	if h, _, reason := wire.Parse(frame); reason == wire.ReasonOK && h.Type == wire.Request {
		l.stuck = append(l.stuck, append([]byte(nil), packet...))
	}
}

// carry brings one copy of a packet to the other end of a link.
func (net *network) carry(l *link, from, to *node, packet []byte, t int64) {
	w := net.w
	at := t + l.delay
	if l.jitter > 0 {
		at += w.dice.Int64N(l.jitter)
	}
	if w.dice.chance(l.rates.reorder) {
		w.count(reordered)
		at += w.dice.exp(10 * l.delay)
	} else {
		at = max(at, l.last)
		l.last = at
	}
	if l.clogged > at {
		w.count(clogged)
		at = l.clogged + at - t // as late as before, counted from the end of the clog
	}
	b := append([]byte(nil), packet...)
	if w.dice.chance(l.rates.corrupt) {
		w.count(corrupted)
		b = corrupt(w.dice, b)
	}
	if net.down[to.index].rate == 0 {
		to.expect(at, func() { net.arrive(from, to, b, t) })
		return
	}
	w.at(at, func() { net.arrive(from, to, b, t) })
}

// arrive takes a packet at the switch to the downlink of its receiver.
func (net *network) arrive(from, to *node, b []byte, sent int64) {
	w := net.w
	at, ok := net.down[to.index].put(w.now, len(b))
	if !ok {
		w.count(tailDropped)
		return
	}
	hand := func() {
		if net.arrived != nil {
			net.arrived(from, to, sent, b)
		}
		to.readdress(b)
		to.deliver(b)
	}
	if at == w.now {
		hand()
	} else {
		to.expect(at, hand)
	}
}

// replay remembers the packet, even one that is about to get lost, and sometimes
// makes an old one arrive, after a time in which the world may have changed.
func (net *network) replay(l *link, to *node, packet []byte) {
	w := net.w
	if l.rates.replay == 0 && w.plan.story == nil {
		return
	}
	if len(l.old) < captures {
		l.old = append(l.old, append([]byte(nil), packet...))
	} else if w.dice.chance(0.5) {
		l.old[w.dice.IntN(captures)] = append([]byte(nil), packet...)
	}
	if w.dice.chance(l.rates.replay) {
		net.again(l, to, l.old[w.dice.IntN(len(l.old))], pick(w.dice, 100*microsecond, 10*millisecond, second))
	}
}

// again makes an old packet of a link arrive after a random time of the given
// mean.
func (net *network) again(l *link, to *node, b []byte, mean int64) {
	w := net.w
	w.count(replayed)
	w.at(w.now+w.dice.exp(mean), func() {
		if !w.calm && l.cut == 0 {
			b := append([]byte(nil), b...)
			to.readdress(b)
			to.earn(4)
			to.deliver(b)
		}
	})
}

// echo makes old packets of a link arrive within a short time: after a restart,
// when new sessions may take the places of those that the packets belong to, or
// after a partition, when the packets had been given up.
func (net *network) echo(from, to int) {
	l := &net.links[from][to]
	if len(l.old) == 0 {
		return
	}
	d := net.w.dice
	for range echoes {
		net.again(l, net.w.nodes[to], l.old[d.IntN(len(l.old))],
			pick(d, millisecond, 10*millisecond, 50*millisecond, 200*millisecond))
	}
}

// corrupt flips a few bits, cuts the packet short or makes it longer.
func corrupt(d dice, b []byte) []byte {
	switch d.IntN(4) {
	case 0:
		return b[:d.IntN(len(b))]
	case 1:
		return append(b, make([]byte, d.IntN(32)+1)...)
	}
	for range d.between(1, 4) {
		i := d.IntN(8 * len(b))
		b[i/8] ^= 1 << (i % 8)
	}
	return b
}
