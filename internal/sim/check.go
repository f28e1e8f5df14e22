// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"math/big"
	"slices"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// check examines the state that the run has left behind, the worst violations
// first.
func (w *world) check() {
	for _, p := range w.pairs {
		for _, o := range p.ops {
			o.resolve()
		}
	}
	if w.failure == nil {
		w.checkLinear()
	}
	for _, p := range w.pairs {
		for _, o := range p.ops {
			w.checkOp(o)
			w.checkEvents(o)
			w.checkLetter(o)
			w.checkExcuse(o)
		}
		w.checkOrder(p)
	}
	for _, n := range w.nodes {
		w.checkUntouched(n)
		for _, region := range []int{sumRegion, arrayRegion, fenceRegion} {
			w.checkSums(n, region)
		}
		w.checkCopies(n)
	}
}

// checkOp checks one operation's outcome.
func (w *world) checkOp(o *op) {
	if !o.done {
		return // its poster crashed; stuck operations were found before
	}
	r, target := o.result, o.peer.target
	if r.Outcome == engine.Restarted && o.late {
		o.peer.foretold(o)
	}
	switch {
	case bytes.Count(o.buf, []byte{poison}) != len(o.buf):
		w.fail("the memory for results of %v changed after its completion, when the caller had it back", o)
	case o.astray && o.succeeded():
		w.fail("%v ran in another life than the one that had answered its name", o)
	case r.Outcome == engine.Success && (r.Status != wire.StatusOK || r.Reason != session.Alive):
		w.fail("%v succeeded with status %v, reason %v", o, r.Status, r.Reason)
	case r.Status == wire.StatusNoKey && !o.refused && !target.regions[o.region].missing(o.call, o.ret):
		w.fail("%v: no such key, but the region was there all the time", o)
	case r.Status == wire.StatusStale && o.named && (target.regions[o.region].missing(o.call, o.ret) ||
		target.forgot(o.peer.since, o.ret)):
	// its session was with an older version
	case r.Status == wire.StatusUnsupported && o.copies() && target.forgot(o.peer.since, o.ret):
	case r.Status != wire.StatusOK && r.Status != wire.StatusNoKey && !o.refused && o.letter == nil:
		w.fail("%v: refused with status %v", o, r.Status)
	case r.Reason == session.RefusedEndpoint && o.peer.endpoint < endpoints &&
		w.troubled(o.peer.pair, o.call-w.aftermath(), o.ret) < 0:
		w.fail("%v: the endpoint exists, but was refused", o)
	// its session may be that of an earlier life
	case r.Reason == session.NoEvents && !target.forgot(o.peer.since, o.ret):
		w.fail("%v: refused, though its endpoint takes events", o)
	case r.Reason == session.ProtocolError:
		w.fail("%v: protocol error between two honest engines", o)
	case w.plan.certain && r.Outcome != engine.Success && !o.refused && !o.cancelled &&
		r.Reason != session.NoMessages &&
		!o.misfits() && o.peer.endpoint < endpoints:
		w.fail("%v: outcome %d, reason %v, though nothing excuses it", o, r.Outcome, r.Reason)
	}
}

// missing reports whether the region's key was unknown at some time in [from, to].
func (r *region) missing(from, to int64) bool { return meets(r.gone, from, to) }

// wiped reports whether the region's memory was lost at some time in [from, to].
func (r *region) wiped(from, to int64) bool { return meets(r.wipes, from, to) }

// meets reports whether one of the spans and [from, to] have a time in common.
func meets(spans []span, from, to int64) bool {
	return slices.ContainsFunc(spans, func(s span) bool { return s.from <= to && from <= s.to })
}

// forgot reports whether the node had occasion to forget its sessions in (from, to].
func (n *node) forgot(from, to int64) bool {
	return slices.ContainsFunc(n.forgets, func(at int64) bool { return from < at && at <= to })
}

// restarted records that operations failed because the target restarted. Each life of
// the target ends at most one session of each pair; that life may itself be over
// when this shows.
func (p *pair) restarted(o *op, now int64) { p.met.note(p, o, now) }

// notices are the times at which operations failed because another life
// answered.
type notices struct {
	at int64 // the latest; 0 = never
	n  int
}

// note fails the run if there were more notices than lives of the target since the
// pair came into being.
func (s *notices) note(p *pair, o *op, now int64) {
	if now == s.at {
		return
	}
	s.at = now
	s.n++
	lives := 0
	for _, at := range p.target.forgets {
		if at > p.since {
			lives++
		}
	}
	if s.n > lives {
		p.c.n.w.fail("%v was told of life %d of node %d since its peer came into being; there were %d", o, s.n,
			p.target.index, lives)
	}
}

// foretold is restarted for an operation of unknown outcome of which a later session
// says that the target restarted.
func (p *pair) foretold(o *op) {
	if !p.target.forgot(p.since, p.c.n.w.now) {
		p.c.n.w.fail("%v was said to have met a restart of node %d, which never did since its peer came into being", o,
			p.target.index)
	}
}

// checkUntouched checks memory that no operation had the right to change.
func (w *world) checkUntouched(n *node) {
	for i := range regionWords[constantRegion] {
		for _, region := range []int{constantRegion, hiddenRegion} {
			if v := n.regions[region].word(i); v.lo != constant {
				w.fail("word %d of %s of %v changed to %v", i, regionName(region), n, v)
			}
		}
	}
	for region, words := range regionWords {
		r := n.regions[region]
		if b := r.bytes[strideOf(region)*words:]; bytes.Count(b, []byte{0}) != len(b) {
			w.fail("the word behind %s of %v changed to %x", regionName(region), n, b)
		}
		for _, p := range r.former {
			if !bytes.Equal(p.bytes, p.held) {
				w.fail("memory that %s of %v had before changed after it was given back", regionName(region), n)
			}
		}
	}
}

// checkSums checks conservation: each word that is only added to holds the sum
// of the operations that succeeded since its memory was last lost, and of a
// subset of those that may have run.
func (w *world) checkSums(n *node, region int) {
	words := regionWords[region]
	sure, maybe := make([]uint64, words), make([][]uint64, words)
	lost := span{-1, -1}
	r := n.regions[region]
	if k := len(r.wipes); k > 0 {
		lost = r.wipes[k-1]
	}
	for _, p := range w.pairs {
		if p.target != n {
			continue
		}
		for _, o := range p.ops {
			if o.signal > 0 && region == fenceRegion {
				addTo(sure, maybe, o.signal-1, 1, o.succeeded() && o.call > lost.from,
					o.mayHaveRun() || o.succeeded() && o.ret >= lost.from)
			}
			if o.region != region || o.code != uint8(atomic.Sum) {
				continue
			}
			certain := o.succeeded() && o.call > lost.from
			possible := o.mayHaveRun() || o.succeeded() && o.ret >= lost.from
			for i := o.first; i < min(o.first+o.count, words); i++ {
				addTo(sure, maybe, i, o.value, certain, possible)
			}
		}
	}
	for i := range words {
		if w.typeOf(region, i) != atomic.Uint64 {
			continue // its history ends with its present value
		}
		v := r.word(i).lo
		if v != sure[i] && !subset(v-sure[i], maybe[i]) {
			w.fail("word %d of %s of %v holds %d: successes make %d, and no part of %v the rest",
				i, regionName(region), n, v, sure[i], maybe[i])
			return
		}
	}
}

// addTo counts an addition to a word that has run for certain, or that may have.
func addTo(sure []uint64, maybe [][]uint64, word int, v uint64, certain, possible bool) {
	if certain {
		sure[word] += v
	} else if possible {
		maybe[word] = append(maybe[word], v)
	}
}

// subset reports whether some of the values, which are small, add up to sum. Bit
// k of reach says whether k can be made.
func subset(sum uint64, values []uint64) bool {
	most := uint64(0)
	reach := big.NewInt(1)
	var shifted big.Int
	for _, v := range values {
		most += v
		reach.Or(reach, shifted.Lsh(reach, uint(v)))
	}
	return sum <= most && reach.Bit(int(sum)) == 1
}

// floor is the least value that the next fetch of a pair from a word must find.
type floor struct {
	value uint64
	since int64 // call of the first operation that value counts
}

// checkOrder checks that operations of one pair took effect in the order posted:
// on a word that only grows, each fetch finds at least the value that the
// successful ones before it left there.
func (w *world) checkOrder(p *pair) {
	if p.c.anyOrder {
		return
	}
	floors := map[wordID]floor{}
	for _, o := range p.ops {
		if !o.succeeded() || o.letter != nil || o.region == registerRegion || o.region == copyRegion ||
			o.region == constantRegion || o.datatype != atomic.Uint64 {
			continue
		}
		for i := range o.count {
			id := wordID{0, o.region, o.first + i}
			f, known := floors[id]
			if !known || p.target.regions[o.region].wiped(f.since, o.ret) {
				f = floor{since: o.call}
			}
			if o.fetches() {
				if o.got[i].lo < f.value {
					w.fail("%v found %d in word %d, but earlier ones of the same pair had left at least %d",
						o, o.got[i].lo, id.word, f.value)
					return
				}
				f.value = o.got[i].lo
			}
			if o.code == uint8(atomic.Sum) {
				f.value += o.value
			}
			floors[id] = f
		}
	}
}
