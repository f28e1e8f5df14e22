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
	origin      *engine.Origin
	peers       []*peer
	wants       []destination
	left        int // operations still to post
	outstanding int
	last        *op  // the one drawn last on a word
	anyOrder    bool // its sessions need no order
	series      int  // operations still to be drawn like it
}

// destination is where a client's operations go.
type destination struct {
	target   *node
	endpoint uint16
}

// pair is one endpoint of a client and one of a target, for one life of the client.
// Order is promised for a pair, unless the client needs none.
type pair struct {
	c        *client
	id       int
	target   *node
	endpoint uint16
	life     int     // of the client's node
	ops      []*op   // in the order posted
	since    int64   // when it was made
	told     int     // seq of the last operation with an event
	met      notices // from operations that may have run
}

func (p *pair) String() string { return fmt.Sprintf("pair %d (%v)", p.id, p.c.n) }

// peer is a name of a pair: a handle of the engine's. There may be several.
type peer struct {
	*pair
	eng   *engine.Peer
	first *peer   // the pair's first name; nil in the first name itself
	told  notices // from operations on memory that did not run
	// toldLetters are from messages that did not run. One may wait at the target, in a
	// session that another name shares: that one may end later than what waits here.
	toldLetters notices
}

// maxOpen is how many operations on one word may be under way or of unknown
// outcome: the search for an order is exponential in their number.
const maxOpen = 10

// ringSize is the length of submission rings.
const ringSize = 128

// newClient makes a client and chooses its destinations: any nodes, its own
// included, and now and then an endpoint that does not exist.
func newClient(n *node, id int) *client {
	w := n.w
	c := &client{n: n, id: id, left: w.plan.ops, anyOrder: w.dice.chance(w.plan.anyOrder)}
	for range w.dice.between(1, w.plan.wants) {
		d := destination{w.nodes[w.dice.IntN(len(w.nodes))], uint16(w.dice.IntN(endpoints))}
		if d.target == n && (w.plan.routed || w.dice.chance(0.8)) {
			d.target = w.nodes[(n.index+1)%len(w.nodes)]
		}
		if w.dice.chance(w.plan.badKeys / 2) {
			d.endpoint = endpoints
		}
		c.wants = append(c.wants, d)
	}
	return c
}

// boot begins the client's life on a node that came up.
func (c *client) boot() {
	w := c.n.w
	var err error
	if c.ring, err = engine.NewRing(ringSize, engine.Contexts{}); err != nil {
		panic(err)
	}
	eng := c.eng()
	if c.origin = eng.NewOrigin(uint16(c.id)); c.anyOrder {
		c.origin = eng.NewUnorderedOrigin(uint16(c.id))
	}
	eng.AddRing(c.ring, c.origin)
	c.peers, c.last, c.series = nil, nil, 0
	for _, d := range c.wants {
		pr := &pair{c: c, id: len(w.pairs), target: d.target, endpoint: d.endpoint, life: c.n.life, since: w.now}
		w.pairs = append(w.pairs, pr)
		for i := range 1 + w.plan.aliases {
			p := &peer{pair: pr}
			p.eng = c.open(d)
			if i > 0 {
				p.first = c.peers[len(c.peers)-i]
				p.connect()
			}
			c.peers = append(c.peers, p)
		}
	}
	life := c.n.life
	w.at(w.now+w.dice.scale(10*microsecond, second), func() {
		if c.n.life == life && !w.calm && w.now >= c.n.stalled {
			c.renounce()
		}
	})
}

// connect makes the engine find out which endpoint a further name of a pair belongs
// to. From then on operations by it and by the first name are in order.
func (p *peer) connect() {
	e := p.c.ring.Claim()
	if e == nil {
		return // it is never used
	}
	e.Peer, e.Context, e.Verb, e.Flags = p.eng.ID(), nobody{}, engine.VerbConnect, 0
	p.c.n.earn(64)
	p.target.earn(64)
	e.Publish()
}

// nobody is the context of an operation that no caller waits for.
type nobody struct{}

func (nobody) Complete(*engine.Submission, *engine.Completion, *engine.Later) {}

// name returns the name to use instead of p as long as there may be no order between
// p and the first one: until the same life has answered both.
func (p *peer) name() *peer {
	if p.first != nil && (p.eng.Life() == 0 || p.eng.Life() != p.first.eng.Life()) {
		return p.first
	}
	return p
}

// meetsFormer reports whether the name of an operation has yet to learn that the life is
// over that answered it last. The operation must not run in the next one.
func (o *op) meetsFormer() bool {
	life, target := o.peer.eng.Life(), o.peer.target
	return life != 0 && (!target.up || life != target.eng.Life())
}

// eng returns the engine that the client posts to.
func (c *client) eng() *engine.Engine { return c.n.engs[c.id%len(c.n.engs)] }

// crash forgets the operations under way: there is no caller left to complete
// them to.
func (c *client) crash() {
	w := c.n.w
	w.counts[lostWithPoster] += c.outstanding
	w.pending -= c.outstanding
	c.outstanding, c.ring, c.origin, c.peers = 0, nil, nil, nil
}

// act posts a burst and plans the next one.
func (c *client) act() {
	w := c.n.w
	if w.calm || c.left == 0 {
		return
	}
	c.burst()
	w.at(w.now+w.dice.exp(w.plan.think)+1, c.act)
}

// burst posts a few operations at once.
func (c *client) burst() {
	w := c.n.w
	if !c.n.up || w.calm || w.plan.story != nil && w.now < c.n.stalled-1 {
		return
	}
	for range w.dice.between(1, int64(w.plan.burst)) {
		if c.left == 0 || c.outstanding >= w.plan.most || !c.post(c.draw().ask()) {
			break
		}
		c.left--
	}
	c.n.wake(w.now)
}

// extend posts an operation that joins the run at the end of a frame, if it can. Most
// operations of a series do.
func (c *client) extend(o *op) bool {
	var like engine.Submission
	var w engine.Word
	if o.fill(&like); !w.Set(&like.Entry) || len(like.Result)%8 != 0 {
		return false
	}
	w.Cookie = like.Cookie
	f := engine.Follower{Context: like.Context, Offset: like.Offset}
	if len(like.Result) > 0 {
		f.Result = (*[8]byte)(like.Result)
	}
	if !c.eng().Extend(c.ring, &w, f) {
		return false
	}
	c.n.w.count(extended)
	return true
}

// prepare fills in an operation, and returns what hands it to the engine then: half of
// the time as a goroutine does that holds the engine, half of the time by the ring. In a
// series it is mostly the former. It returns nil when the ring is full.
func (c *client) prepare(o *op) (hand func()) {
	direct := 0.5
	if c.series > 0 {
		direct = 0.9
	}
	if c.n.w.dice.chance(direct) {
		if c.extend(o) {
			return func() {}
		}
		if s := c.eng().Begin(c.ring); s != nil {
			o.fill(s)
			return func() { c.eng().Submit(c.ring) }
		}
	}
	s := c.ring.Claim()
	if s == nil {
		return nil
	}
	o.fill(s)
	return s.Publish
}

// post hands an operation to the engine. It returns false when the ring is
// full.
func (c *client) post(o *op) bool {
	w := c.n.w
	hand := c.prepare(o)
	if hand == nil {
		return false
	}
	o.call, o.seq, o.met = w.now, len(o.peer.ops), o.peer.eng.Life()
	o.peer.ops = append(o.peer.ops, o)
	w.note(o)
	c.outstanding++
	w.pending++
	w.count(operations)
	w.trace.event("post  %v", o)
	frames := float64(64 + o.count)
	if o.letter != nil {
		frames += float64(o.letter.length) / 10
	}
	if o.data != 0 {
		frames *= 2 // it may have to come again, as there is no place for its event
	}
	c.n.earn(frames)
	o.peer.target.earn(frames)
	if o.meetsFormer() {
		c.n.posted = append(c.n.posted, o)
	}
	hand()
	c.flush(o)
	if w.dice.chance(w.plan.cancels) || o.letter != nil && w.dice.chance(0.05) {
		o.cancelLater()
	}
	return true
}

// draw draws an operation.
func (c *client) draw() *op {
	w, d, p := c.n.w, c.n.w.dice, &c.n.w.plan
	o := &op{peer: c.peers[d.IntN(len(c.peers))].name(), count: 1, datatype: atomic.Uint64,
		value: uint64(d.between(1, 200))}
	if c.series > 0 && d.chance(0.8) { // sometimes another one comes between
		if c.series--; o.another(c.last) {
			return o
		}
	}
	t := o.peer.target.index
	switch {
	case d.chance(p.letters) && (o.peer.target.receives(o.peer.endpoint) || d.chance(0.1)):
		o.drawLetter(w)
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
	case d.chance(0.1) && o.peer.c.n.features()&o.peer.target.features()&wire.FeatureMemory != 0:
		o.drawCopy(w)
	default:
		if o.drawWord(w, t); c.series == 0 && d.chance(0.3) {
			c.last, c.series = o, 2+d.IntN(8)
		}
	}
	return o
}

// another makes o like the last operation, so that the two can share a run. Most go to an
// array, whose order is not searched for. It returns false if it cannot.
func (o *op) another(last *op) bool {
	w := o.peer.c.n.w
	region, first := arrayRegion, w.dice.IntN(16)
	if w.dice.chance(0.2) || last.region != sumRegion {
		region, first = last.region, last.first
	}
	o.peer = last.peer.name()
	if w.typeOf(region, first) != last.datatype || w.crowded(o.peer.target.index, region, first) {
		return false
	}
	o.region, o.first, o.datatype = region, first, last.datatype
	o.verb, o.code, o.value, o.compare = last.verb, last.code, last.value, last.compare
	return true
}

// crowded reports whether a word has as many operations as can be checked for
// linearizability at little cost.
func (w *world) crowded(target, region, word int) bool {
	u := w.words[wordID{target, region, word}]
	return u.all >= w.plan.wordOps || u.open >= maxOpen
}

// drawWord makes o an operation on a single word, on one of the words that are
// checked for linearizability as long as that stays cheap.
func (o *op) drawWord(w *world, target int) {
	d := w.dice
	o.region = pick(d, sumRegion, registerRegion)
	o.first = d.IntN(regionWords[o.region])
	if w.crowded(target, o.region, o.first) {
		o.region, o.first = arrayRegion, d.IntN(16)
	}
	o.datatype = w.typeOf(o.region, o.first)
	if o.region != registerRegion {
		o.verb, o.code = pick(d, wire.VerbAtomic, wire.VerbFetch, wire.VerbFetch), uint8(atomic.Sum)
		if d.chance(0.1) {
			o.verb, o.code = wire.VerbFetch, uint8(atomic.Read)
		}
		return
	}
	o.value = uint64(d.IntN(16)) // few values, so that comparisons succeed
	verb := wire.VerbFetch       // mostly: each change that was not fetched doubles the search for an order
	if d.chance(0.15) {
		verb = wire.VerbAtomic
	}
	switch d.IntN(5) {
	case 0:
		o.verb, o.code = wire.VerbFetch, uint8(atomic.Read)
	case 1:
		o.verb, o.code = verb, uint8(atomic.Write)
	case 2:
		o.verb, o.code = verb, uint8(pick(d, atomic.Max, atomic.Max, atomic.Min))
	default:
		o.verb, o.code = wire.VerbCompare, uint8(atomic.Cswap)
		o.compare = uint64(d.IntN(16))
		if o.datatype != atomic.Float && o.datatype != atomic.Double {
			o.bound()
		}
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

// ops returns the operations of the client's present life.
func (c *client) ops() (all []*op) {
	var last *pair
	for _, p := range c.peers {
		if p.pair != last {
			all, last = append(all, p.ops...), p.pair
		}
	}
	return all
}
