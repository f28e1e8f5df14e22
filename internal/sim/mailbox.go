// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Some endpoints receive messages. Their owner posts receives of all kinds, before the
// messages or after, and now and then none for minutes; it looks for messages, and
// claims and discards some. In the end it takes everything.

// mailbox is the owner of one endpoint that receives, in one life of its node.
type mailbox struct {
	n        *node
	endpoint uint16
	life     int
	cfg      matching.Config
	q        *matching.Queue
	taps     []*mailTap // of the sessions that have not ended
	posted   []*receive // that have not completed, in posting order
	claims   []*receive // for letters that are claimed; not posted yet
	receives int        // posted so far
	breaks   int        // messages that ended in their middle

	places, unread int // in the completion queue: taken, and completions to be read
	limit          int // of places
	lazy           int64
	drains         bool     // everything is taken as it comes
	posting        *receive // what comes now was here before the receive
	cancelling     *receive
	closing        bool
}

// receives reports whether an endpoint of the node receives messages. The others do not.
func (n *node) receives(endpoint uint16) bool {
	return n.w.plan.letters > 0 && (endpoint == 1 || endpoint == 2)
}

// openBoxes gives the endpoints that receive their owners.
func (n *node) openBoxes() {
	w, d := n.w, n.w.dice
	for i := range n.boxes {
		if n.boxes[i] = nil; !n.receives(uint16(i)) {
			continue
		}
		b := &mailbox{n: n, endpoint: uint16(i), life: n.life, limit: pick(d, 2, 8, 64)}
		b.cfg = matching.Config{
			Receives: pick(d, 16, 32, 64), Unexpected: pick(d, 0, 2, 64),
			Memory: pick(d, 0, 2*matching.ChunkSize, 1<<15, 1<<20),
			Sink:   b, Room: n.roomMade,
		}
		b.q = matching.New(b.cfg)
		n.boxes[i] = b
		w.at(w.now+b.pause(), b.act)
		if w.calm {
			b.drain()
		}
	}
}

// roomMade tells the node's engines that a message may find room.
func (n *node) roomMade() {
	for _, e := range n.engs {
		e.Room()
	}
	if n.stepping {
		n.again = true
	} else {
		n.wake(n.w.now)
	}
}

// inflow returns where the messages of a session go.
func (n *node) inflow(endpoint uint16, from wire.Addr) session.Inflow {
	if int(endpoint) >= len(n.boxes) || n.boxes[endpoint] == nil {
		return nil
	}
	b := n.boxes[endpoint]
	t := &mailTap{Inflow: b.q.NewInflow(from), b: b}
	b.taps = append(b.taps, t)
	return t
}

func (b *mailbox) String() string { return fmt.Sprintf("endpoint %d of %v", b.endpoint, b.n) }

// lives reports whether the owner can do anything now.
func (b *mailbox) lives() bool {
	return b.n.up && b.n.life == b.life && !b.closing
}

// pause is the time until the owner acts again of itself.
func (b *mailbox) pause() int64 {
	w := b.n.w
	if w.plan.story != nil {
		return w.dice.scale(millisecond, 5*minute)
	}
	return w.dice.exp(w.plan.end/40) + 1
}

// act is called again and again: the owner reads completions and posts receives.
func (b *mailbox) act() {
	w := b.n.w
	if !b.lives() || w.calm {
		return
	}
	w.at(w.now+b.pause(), b.act)
	b.work()
}

// hear makes the owner act soon: a message has come.
func (b *mailbox) hear() {
	w := b.n.w
	if b.drains {
		w.at(w.now+microsecond, b.refill)
	} else if w.dice.chance(0.3) {
		w.at(w.now+w.dice.scale(microsecond, 100*millisecond), b.work)
	}
}

// work does a few things.
func (b *mailbox) work() {
	w, d := b.n.w, b.n.w.dice
	if !b.lives() || w.calm || w.now < b.n.stalled {
		return
	}
	b.read()
	if w.now < b.lazy {
		return
	}
	if d.chance(0.1) {
		most := max(w.plan.end/3, 2*millisecond)
		if w.plan.story != nil {
			most = 10 * minute
		}
		b.lazy = w.now + d.scale(millisecond, most)
		return
	}
	for range d.between(1, 5) {
		switch d.IntN(12) {
		case 0:
			if len(b.posted) > 0 {
				b.cancel(pick(d, b.posted...))
			}
		case 1, 2:
			b.look()
		case 3:
			b.fetch()
		default:
			b.post(b.draw())
		}
	}
}

// read takes the completions off the completion queue.
func (b *mailbox) read() {
	b.places -= b.unread
	b.unread = 0
	b.q.Freed()
}

// Take implements matching.Sink.
func (b *mailbox) Take() bool {
	if !b.drains && b.places >= b.limit {
		return false
	}
	b.places++
	return true
}

// Return implements matching.Sink.
func (b *mailbox) Return() { b.places-- }

// drain makes the owner take everything from now on.
func (b *mailbox) drain() {
	b.drains, b.lazy = true, 0
	b.read()
	for _, r := range append([]*receive(nil), b.posted...) {
		b.cancel(r)
	}
	b.refill()
	b.n.roomMade() // for the rest of messages, too
}

// refill keeps receives posted that take any message, besides those into which messages
// of senders may be going that died or pause.
func (b *mailbox) refill() {
	if !b.lives() {
		return
	}
	b.read()
	for range b.claims {
		b.fetch()
	}
	for _, tagged := range []bool{false, true} {
		lacks := 1
		for _, t := range b.taps {
			if _, n := t.InProgress(); n > 0 && t.tagged == tagged {
				lacks++
			}
		}
		for _, r := range b.posted {
			if r.any() && r.match.Tagged == tagged {
				lacks--
			}
		}
		for range lacks {
			b.post(b.newReceive(longest, matching.Match{Tagged: tagged, Ignore: ^uint64(0), AnySource: true}))
		}
	}
}

// check looks for contradictions in the queue, and counts the receives again.
func (b *mailbox) check() {
	b.checkStalls()
	w, u := b.n.w, b.q.Usage()
	if err := b.q.Check(); err != nil {
		w.fail("%v: %v", b, err)
	}
	chunks := (b.cfg.Memory + matching.ChunkSize - 1) / matching.ChunkSize * matching.ChunkSize
	if u.Held > b.cfg.Unexpected || u.Memory > chunks || u.Made > chunks || u.Posted+u.Filling > b.cfg.Receives ||
		u.Inflows != len(b.taps) {
		w.fail("%v uses %+v, which is more than %+v; %d sessions", b, u, b.cfg, len(b.taps))
	}
	if u.Posted+u.Filling != len(b.posted) {
		w.fail("%v: %d receives have not completed, but the queue has %+v", b, len(b.posted), u)
	}
	if b.places-b.unread != u.Places {
		w.fail("%v: %d places are taken, and %d completions to be read, but the queue has %d", b, b.places,
			b.unread, u.Places)
	}
}

// checkDrained checks that nothing is left, and takes back the receives.
func (b *mailbox) checkDrained() {
	if u := b.q.Usage(); u.Held+u.Filling+u.Inflows+u.Memory > 0 {
		b.n.w.fail("%v keeps %+v after the end", b, u)
	}
	b.closing = true
	b.q.Close()
	if len(b.posted) > 0 {
		b.n.w.fail("%v: %d receives have not completed, though the queue is closed", b, len(b.posted))
	}
}
