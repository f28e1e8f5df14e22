// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
)

// trouble is a time during which some nodes had an excuse not to reach each other.
type trouble struct {
	a, b int // nodes; b < 0 for all others
	span
}

// excuse records that two nodes cannot be expected to reach each other until a time.
func (w *world) excuse(a, b int, until int64) {
	w.troubles = append(w.troubles, trouble{a, b, span{w.now, until}})
}

func (t *trouble) concerns(a, b int) bool {
	return t.b < 0 && (t.a == a || t.a == b) || t.a == a && t.b == b || t.a == b && t.b == a
}

// troubled returns the end of the trouble that the nodes of a pair had at some time
// in [from, to], including all other troubles that begin before it is over. It
// returns -1 when they had none.
func (w *world) troubled(p *pair, from, to int64) int64 {
	end := int64(-1)
	for more := true; more; {
		more = false
		for i := range w.troubles {
			t := &w.troubles[i]
			if t.from <= to && t.to >= from && t.to > end && t.concerns(p.c.n.index, p.target.index) {
				end, to, more = t.to, max(to, t.to), true
			}
		}
	}
	return end
}

// troublesEnd returns when the last of all troubles is over.
func (w *world) troublesEnd() int64 {
	end := w.now
	for _, t := range w.troubles {
		end = max(end, t.to)
	}
	return end
}

// aftermath is how long after a trouble it may still make operations fail:
// until an unlucky session has been given up, and the next one as well.
func (w *world) aftermath() int64 {
	return 2*int64(w.plan.session.GiveUp) + 3*int64(w.plan.session.RTOMax) + second
}

// An unknown outcome is promised to become known when the path heals within a minute.
// That takes a while, in which no new trouble may come.
const (
	keeps    = 50 * second
	clearing = 10 * second
)

// interrupted reports whether the nodes of a pair may have reached each other in
// between, only to lose each other again: whether some trouble began or ended inside
// (from, to).
func (w *world) interrupted(p *pair, from, to int64) bool {
	for i := range w.troubles {
		t := &w.troubles[i]
		if t.concerns(p.c.n.index, p.target.index) && (from < t.from && t.from < to || from < t.to && t.to < to) {
			return true
		}
	}
	return false
}

// slept reports whether a node of the pair was frozen for long at some time in
// [from, to]: then the operation was without contact for longer than it seems.
func (p *pair) slept(from, to int64) bool {
	for _, n := range []*node{p.c.n, p.target} {
		for _, s := range n.frozen {
			if s.from <= to && from <= s.to && s.to-s.from > keeps/2 {
				return true
			}
		}
	}
	return false
}

// evicted reports whether an operation may have failed for lack of room: its
// session was refused, evicted at the target, or given up here for the sake of
// others, or had no buffer for the rest of a message until it was closed as idle.
func evicted(r engine.Result) bool {
	return r.Outcome == engine.Unknown || r.Reason == session.RefusedFull || r.Reason == session.Forgotten ||
		r.Reason == session.GaveUp || r.Reason == session.Idle
}

// checkExcuse looks for an excuse for an operation that has not succeeded, or whose
// outcome stays unknown for good.
func (w *world) checkExcuse(o *op) {
	p := o.peer.pair
	if w.plan.story == nil || !o.done {
		return
	}
	if took, most := o.completed-o.call, w.patience(o); took > most {
		w.fail("%v took %.3f s to complete, want at most %.3f s", o, float64(took)/float64(second),
			float64(most)/float64(second))
	}
	if o.refused || o.succeeded() || o.late || p.endpoint >= endpoints ||
		o.result.Outcome == engine.Restarted || o.result.Reason == session.PeerRestarted ||
		o.result.Reason == session.NoMessages || o.result.Reason == session.NoEvents || o.misfits() ||
		o.letter == nil && p.target.regions[o.region].missing(o.call, o.ret) {
		return
	}
	full := w.plan.tight() && evicted(o.result)
	last := w.troubled(p, o.call-w.aftermath(), o.ret)
	if !o.cancelled && !full && last < 0 {
		w.fail("%v, posted at %.3f s: outcome %d, reason %v, though nothing stood in its way", o,
			float64(o.call)/float64(second),
			o.result.Outcome, o.result.Reason)
		return
	}
	if quiet := o.ret - max(last, o.call); w.plan.prompt && !w.plan.tight() && !o.cancelled &&
		quiet >= int64(w.plan.session.GiveUp) {
		w.fail("%v, posted at %.3f s: outcome %d, reason %v, after %.3f s in which nothing stood in its way", o,
			float64(o.call)/float64(second), o.result.Outcome, o.result.Reason, float64(quiet)/float64(second))
		return
	}
	if o.result.Reason == session.PeerClosed {
		return // its owner closed the endpoint, so that an answer lost then is not asked for
	}
	if o.letter != nil || o.behind() > o.completed-o.call {
		return // it may have waited for a receive, or behind a message, until the next trouble
	}
	if o.result.Outcome != engine.Unknown || o.count > 1 || p.life != p.c.n.life || p.target.forgot(o.call, w.now) {
		return // known, ran in part, of an origin that is gone, or forgotten by the target
	}
	if w.plan.tight() {
		return // it was evicted for others
	}
	healed := max(w.troubled(p, o.ret, o.ret), o.ret)
	if healed > o.ret+keeps || w.troubled(p, healed+1, healed+clearing) >= 0 || w.interrupted(p, o.ret, healed) ||
		p.slept(o.call, o.ret) {
		return
	}
	w.fail("%v, unknown at %.3f s, is so for good, though there was no more trouble from %.3f s on", o,
		float64(o.ret)/float64(second), float64(healed)/float64(second))
}

// tight reports whether there may be too few sessions and buffers.
func (p *plan) tight() bool { return p.sessions < 64 || p.buffers < 512 }

// patience is how long an operation may take: until the session that it waits for,
// or behind, has been given up, and the one that it is sent in as well. A frozen
// node does not count the time for which it is frozen.
func (w *world) patience(o *op) int64 {
	most := 8*int64(w.plan.session.GiveUp) + 10*second + o.behind()
	if o.letter != nil {
		return forever // its receiver may take any time
	}
	for _, s := range o.peer.c.n.frozen {
		if s.from <= o.completed && o.call <= s.to {
			most += s.to - s.from
		}
	}
	return most
}

// allowance is how many frames a node may send: some for each operation posted to
// it, and a few each second for what it does by itself.
type allowance struct {
	left float64
	at   int64
}

const (
	idleFrames = 100.0  // a second, for each peer of the node
	mostFrames = 5000.0 // saved up
)

// earn allows a node frames for an event.
func (n *node) earn(frames float64) {
	n.frames.left = min(n.frames.left+frames, max(n.frames.left, mostFrames))
}

// earnBacklog allows a node that wakes up an answer to each packet that came in
// meanwhile, however often the same one was sent.
func (n *node) earnBacklog() {
	for _, p := range n.ports {
		n.frames.left += float64(len(p.rx))
	}
}

// spend takes a frame off the allowance, so that a node that sends without end
// is found out.
func (n *node) spend() {
	w := n.w
	if w.plan.story == nil {
		return
	}
	peers := 1
	for _, c := range n.clients {
		peers += len(c.peers)
	}
	n.earn(float64(w.now-n.frames.at) / float64(second) * idleFrames * float64(peers))
	n.frames.at = w.now
	if n.frames.left--; n.frames.left < 0 {
		w.fail("%v sends without end: more than %d frames beyond what its work needs and %d a second for each of %d "+
			"peers",
			n, int(mostFrames), int(idleFrames), peers)
	}
}
