// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// client is an application on a node: in each of the node's lives it has a
// submission ring and peers, and it posts until its operations are used up.
type client struct {
	n           *node
	id          int
	ring        *engine.Ring
	peers       []*peer
	wants       []destination
	left        int // operations still to post
	outstanding int
}

// destination is where a client's operations go.
type destination struct {
	target   *node
	endpoint uint16
}

// peer is a destination within one life of a client.
type peer struct {
	c            *client
	id           int
	target       *node
	endpoint     uint16
	life         int // of its node
	eng          *engine.Peer
	ops          []*op // in the order posted
	restartTimes int   // times at which operations ended with a restart of the target
	restartAt    int64
}

func (p *peer) String() string { return fmt.Sprintf("peer %d (%v)", p.id, p.c.n) }

// maxOpen is how many operations on one word may be under way or of unknown
// outcome: the search for an order is exponential in their number.
const maxOpen = 10

// ringSize is the length of submission rings.
const ringSize = 128

// newClient makes a client and chooses its destinations: any nodes, its own
// included, and now and then an endpoint that does not exist.
func newClient(n *node, id int) *client {
	w := n.w
	c := &client{n: n, id: id, left: w.plan.ops}
	for range w.dice.between(1, 3) {
		d := destination{w.nodes[w.dice.IntN(len(w.nodes))], uint16(w.dice.IntN(endpoints))}
		if d.target == n && w.dice.chance(0.8) {
			d.target = w.nodes[(n.index+1)%len(w.nodes)]
		}
		if w.dice.chance(w.plan.badKeys / 2) {
			d.endpoint = endpoints
		}
		c.wants = append(c.wants, d)
	}
	return c
}

// boot begins the client's life on a node that has come up.
func (c *client) boot() {
	var err error
	if c.ring, err = engine.NewRing(ringSize); err != nil {
		panic(err)
	}
	c.n.eng.AddRing(c.ring)
	c.peers = nil
	for _, d := range c.wants {
		p := &peer{c: c, id: len(c.n.w.peers), target: d.target, endpoint: d.endpoint, life: c.n.life, restartAt: -1}
		if p.eng, err = c.n.eng.NewPeer(c.n.linkTo(d.target), 0, d.endpoint); err != nil {
			panic(err)
		}
		c.peers = append(c.peers, p)
		c.n.w.peers = append(c.n.w.peers, p)
	}
}

// crash forgets the operations under way: nobody is left to complete them to.
func (c *client) crash() {
	w := c.n.w
	w.counts[lostWithPoster] += c.outstanding
	w.pending -= c.outstanding
	c.outstanding, c.ring, c.peers = 0, nil, nil
}

// act posts a burst and plans the next one.
func (c *client) act() {
	w := c.n.w
	if w.calm || c.left == 0 {
		return
	}
	if c.n.up {
		for range w.dice.between(1, int64(w.plan.burst)) {
			if c.left == 0 || c.outstanding >= w.plan.most || !c.post(c.draw()) {
				break
			}
			c.left--
		}
		c.n.wake(w.now)
	}
	w.at(w.now+w.dice.exp(w.plan.think)+1, c.act)
}

// post hands an operation to the engine. False means that the ring is full.
func (c *client) post(o *op) bool {
	w := c.n.w
	e := c.ring.Claim()
	if e == nil {
		return false
	}
	o.call, o.seq = w.now, len(o.peer.ops)
	o.fill(e)
	o.peer.ops = append(o.peer.ops, o)
	w.note(o)
	c.outstanding++
	w.pending++
	w.count(operations)
	w.trace.event("post  %v", o)
	e.Publish()
	return true
}

// draw makes up an operation.
func (c *client) draw() *op {
	w, d, p := c.n.w, c.n.w.dice, &c.n.w.plan
	o := &op{peer: c.peers[d.IntN(len(c.peers))], count: 1, value: uint64(d.between(1, 200))}
	t := o.peer.target.index
	switch {
	case d.chance(p.badKeys):
		o.drawRefused(d)
	case d.chance(p.fences) && w.fenced[t] < regionWords[fenceRegion]:
		o.fenced = true
		o.region, o.first = fenceRegion, w.fenced[t]
		o.verb, o.code = pick(d, wire.VerbAtomic, wire.VerbFetch), uint8(atomic.Sum)
		w.fenced[t]++
	case d.chance(p.longOnes):
		o.region = arrayRegion
		o.first = d.IntN(regionWords[arrayRegion])
		o.count = 1 + d.IntN(regionWords[arrayRegion]-o.first)
		o.verb, o.code = pick(d, wire.VerbAtomic, wire.VerbFetch), uint8(atomic.Sum)
	default:
		o.drawWord(w, t)
	}
	return o
}

// drawWord makes o an operation on a single word, on one of the words that are
// checked for linearizability as long as that stays cheap.
func (o *op) drawWord(w *world, target int) {
	d := w.dice
	o.region = pick(d, sumRegion, registerRegion)
	o.first = d.IntN(regionWords[o.region])
	if u := w.words[wordID{target, o.region, o.first}]; u.all >= w.plan.wordOps || u.open >= maxOpen {
		o.region, o.first = arrayRegion, d.IntN(16)
	}
	if o.region != registerRegion {
		o.verb, o.code = pick(d, wire.VerbAtomic, wire.VerbFetch, wire.VerbFetch), uint8(atomic.Sum)
		if d.chance(0.1) {
			o.verb, o.code = wire.VerbFetch, uint8(atomic.Read)
		}
		return
	}
	o.value = uint64(d.IntN(16)) // few values, so that comparisons succeed
	verb := wire.VerbFetch       // mostly: each change that nobody saw doubles the search for an order
	if d.chance(0.15) {
		verb = wire.VerbAtomic
	}
	switch d.IntN(5) {
	case 0:
		o.verb, o.code = wire.VerbFetch, uint8(atomic.Read)
	case 1:
		o.verb, o.code = verb, uint8(atomic.Write)
	case 2:
		o.verb, o.code = verb, uint8(atomic.Max)
	default:
		o.verb, o.code = wire.VerbCompare, uint8(atomic.Cswap)
		o.compare = uint64(d.IntN(16))
	}
}

// drawRefused makes o an operation that every target has to refuse.
func (o *op) drawRefused(d dice) {
	o.refused = true
	o.verb, o.code = pick(d, wire.VerbAtomic, wire.VerbFetch), uint8(atomic.Sum)
	switch d.IntN(4) {
	case 0:
		o.region = sumRegion // fill changes the key
	case 1:
		o.region = hiddenRegion
	case 2:
		o.region = constantRegion // readable only
	default:
		o.region, o.first = arrayRegion, d.IntN(regionWords[arrayRegion])
		o.count = regionWords[arrayRegion] - o.first + 1 // one too many
	}
}
