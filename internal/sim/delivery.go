// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
)

// delivered records that a letter has come, into a receive or to be discarded.
func (b *mailbox) delivered(l *letter, r *receive) {
	w := b.n.w
	w.count(lettersCame)
	w.trace.event("came  %v", l)
	if l.came++; l.came > 1 {
		w.fail("%v came %d times", l, l.came)
		return
	}
	l.at, l.into = w.now, r
	b.checkTurn(l)
	l.see()
}

// checkTurn checks that letters which match the same receive come in posting order.
func (b *mailbox) checkTurn(l *letter) {
	if l.claimed || l.into == nil {
		return
	}
	ops := l.o.peer.ops
	for _, o := range ops[l.o.seq+1:] {
		if later := o.letter; later != nil && later.into != nil && !later.into.claim && later.into.takes(l) {
			b.n.w.fail("%v comes behind %v, whose %v matches both", l, later, later.into)
			return
		}
	}
}

// checkOldest checks that no older receive has waited all the time for a letter like the
// one that came into r. A receive waits if no message goes into it, which is certain
// if there is none in progress; and one of a message that broke off waits again.
func (b *mailbox) checkOldest(l *letter, r *receive) {
	if r.claim {
		return
	}
	for _, t := range b.taps {
		if _, lacks := t.InProgress(); lacks > 0 {
			return
		}
	}
	for _, older := range b.posted {
		if older.id < r.id && older != r && !older.claim && !older.multi && older.breaks == b.breaks && older.takes(l) {
			b.n.w.fail("%v came into %v, though the older %v matches it", l, r, older)
			return
		}
	}
}

// see remembers what memory shows of the additions that the pair has posted before.
func (l *letter) see() {
	const most = 4
	p := l.o.peer
	for i := l.o.seq - 1; i >= 0 && len(l.seen) < most; i-- {
		if o := p.ops[i]; o.adds() {
			l.seen = append(l.seen, sight{o, o.first, p.target.regions[o.region].word(o.first).lo})
		}
	}
}

// adds reports whether the operation adds to words that are only added to.
func (o *op) adds() bool {
	return o.letter == nil && o.code == uint8(atomic.Sum) && o.datatype == atomic.Uint64 && !o.refused &&
		o.region != registerRegion
}

// checkLetter checks that a letter came as often as its outcome says, and behind the
// operations before it.
func (w *world) checkLetter(o *op) {
	l := o.letter
	if l == nil {
		return
	}
	target := o.peer.target
	switch {
	case o.succeeded() && l.came == 0 && !target.died(o.call):
		w.fail("%v succeeded, but never came", l)
	case o.done && o.result.Outcome == engine.NotExecuted && l.came > 0 && l.into != nil && !(l.misfit && l.match):
		w.fail("%v was not executed, but came", l)
	case o.succeeded() && !l.welcome && !target.forgot(o.peer.since, w.now):
		w.fail("%v succeeded, but its endpoint does not receive messages", l)
	case o.done && o.result.Reason == session.NoMessages && l.welcome && !target.forgot(o.peer.since, o.ret):
		w.fail("%v: refused, though its endpoint receives messages", l)
	}
	w.checkCombination(o)
	for _, s := range l.seen {
		w.checkSight(l, &s)
	}
}

// checkSight checks that memory showed an operation when a later letter came.
func (w *world) checkSight(l *letter, s *sight) {
	p, r := l.o.peer, l.o.peer.target.regions[s.o.region]
	if !s.o.succeeded() || s.o.late || r.wiped(s.o.call, l.at) {
		return
	}
	least := uint64(0)
	for _, b := range p.ops[:s.o.seq+1] {
		if b.adds() && b.region == s.o.region && b.first <= s.word && s.word < b.first+b.count && b.succeeded() &&
			!r.wiped(b.call, l.at) {
			least += b.value
		}
	}
	if s.value < least {
		w.fail("%v came when word %d of %s held %d, but %v and those before it make %d", l, s.word,
			regionName(s.o.region), s.value, s.o, least)
	}
}

// died reports whether the node has crashed since a time.
func (n *node) died(since int64) bool {
	return len(n.deaths) > 0 && n.deaths[len(n.deaths)-1] >= since
}

// behind is how long an operation may have waited for letters between the same endpoints,
// which had been posted before it, or for buffers that letters had.
func (o *op) behind() int64 {
	wait, p := int64(0), o.peer.pair
	tight := p.c.n.w.plan.tight() // then a letter to anybody may have the last buffer
	for _, l := range p.c.n.w.letters {
		b := l.o
		switch q := b.peer.pair; {
		case q.c.n != p.c.n || q.life != p.life:
		case !tight && (q.c != p.c || q.target != p.target || q.endpoint != p.endpoint || b.call > o.call):
		case b.succeeded() && !b.cancelled:
			wait = max(wait, b.completed-o.call)
		case l.came > 0:
			wait = max(wait, l.at-o.call, b.completed-o.call)
		case b.result.Reason != session.NoMessages:
			return forever / 2 // it may have waited at the target for any time
		}
	}
	return wait
}
