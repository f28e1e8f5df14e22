// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"math/big"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// check looks at what the run has left behind.
func (w *world) check() {
	for _, p := range w.peers {
		for _, o := range p.ops {
			o.resolve()
			w.checkOp(o)
		}
		w.checkOrder(p)
	}
	for _, n := range w.nodes {
		w.checkUntouched(n)
		for _, region := range []int{sumRegion, arrayRegion, fenceRegion} {
			w.checkSums(n, region)
		}
	}
	if w.failure == nil {
		w.checkLinear()
	}
}

// checkOp looks at one operation's outcome.
func (w *world) checkOp(o *op) {
	if !o.done {
		return // its poster crashed; those that are stuck were found before
	}
	r, target := o.result, o.peer.target
	switch {
	case !bytes.Equal(o.left, o.buf):
		w.fail("the results of %v changed after its completion", o)
	case r.Fate == engine.Success && (r.Status != wire.StatusOK || r.Reason != session.Alive):
		w.fail("%v succeeded with status %v, reason %v", o, r.Status, r.Reason)
	case r.Status == wire.StatusNoKey && !o.refused && !target.regions[o.region].missing(o.call, o.ret):
		w.fail("%v: no such key, but the region was there all the time", o)
	case r.Status != wire.StatusOK && r.Status != wire.StatusNoKey && !o.refused:
		w.fail("%v: refused with status %v", o, r.Status)
	case r.Reason == session.RefusedEndpoint && o.peer.endpoint < endpoints:
		w.fail("%v: the endpoint exists, but was refused", o)
	case r.Reason == session.ProtocolError:
		w.fail("%v: protocol error between two honest engines", o)
	case w.plan.certain && r.Fate != engine.Success && !o.refused && o.peer.endpoint < endpoints:
		w.fail("%v: fate %d, reason %v, though nothing excuses it", o, r.Fate, r.Reason)
	}
}

// missing reports whether the region's key was unknown at some time in [from, to].
func (r *region) missing(from, to int64) bool {
	for _, s := range r.gone {
		if s.from <= to && from <= s.to {
			return true
		}
	}
	return false
}

// wiped reports whether the node's memory was lost at some time in [from, to].
func (n *node) wiped(from, to int64) bool {
	for _, s := range n.wipes {
		if s.from <= to && from <= s.to {
			return true
		}
	}
	return false
}

// restarted notes that operations ended because the target restarted. A target
// that forgets everything ends one session per peer, no more.
func (p *peer) restarted(now int64) {
	if now == p.restartAt {
		return
	}
	p.restartAt = now
	if p.restartTimes++; p.restartTimes > p.target.forgets {
		p.c.n.w.fail("%v was told of %d restarts of node %d, which had %d", p, p.restartTimes, p.target.index, p.target.forgets)
	}
}

// checkUntouched looks at memory that nobody had the right to change.
func (w *world) checkUntouched(n *node) {
	for i := range regionWords[constantRegion] {
		for _, region := range []int{constantRegion, hiddenRegion} {
			if v := n.word(region, i); v != constant {
				w.fail("word %d of %s of %v changed to %x", i, regionName(region), n, v)
			}
		}
	}
	for region, words := range regionWords {
		if v := n.word(region, words); v != 0 {
			w.fail("the word behind %s of %v changed to %x", regionName(region), n, v)
		}
	}
}

// checkSums checks conservation: each word that is only added to holds the sum
// of what succeeded since its memory was last lost, and of a subset of what may
// have run.
func (w *world) checkSums(n *node, region int) {
	words := regionWords[region]
	sure, maybe := make([]uint64, words), make([][]uint64, words)
	lost := span{-1, -1}
	if k := len(n.wipes); k > 0 {
		lost = n.wipes[k-1]
	}
	for _, p := range w.peers {
		if p.target != n {
			continue
		}
		for _, o := range p.ops {
			if o.region != region || o.code != uint8(atomic.Sum) {
				continue
			}
			certain := o.succeeded() && o.call > lost.from
			possible := o.mayHaveRun() || o.succeeded() && o.ret >= lost.from
			for i := o.first; i < min(o.first+o.count, words); i++ {
				if certain {
					sure[i] += o.value
				} else if possible {
					maybe[i] = append(maybe[i], o.value)
				}
			}
		}
	}
	for i := range words {
		v := n.word(region, i)
		if v != sure[i] && !subset(v-sure[i], maybe[i]) {
			w.fail("word %d of %s of %v holds %d: successes make %d, and no part of %v the rest",
				i, regionName(region), n, v, sure[i], maybe[i])
			return
		}
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

// floor is what the next fetch of a peer from a word must at least find.
type floor struct {
	value uint64
	since int64 // call of the first operation that value counts
}

// checkOrder checks that operations of one peer took effect in the order posted:
// on a word that only grows, each fetch finds at least what the successful ones
// before it left there.
func (w *world) checkOrder(p *peer) {
	floors := map[wordID]floor{}
	for _, o := range p.ops {
		if !o.succeeded() || o.region == registerRegion || o.region == constantRegion {
			continue
		}
		for i := range o.count {
			id := wordID{0, o.region, o.first + i}
			f, known := floors[id]
			if !known || p.target.wiped(f.since, o.ret) {
				f = floor{since: o.call}
			}
			if o.fetches() {
				if o.got[i] < f.value {
					w.fail("%v found %d in word %d, but earlier ones of the same peer had left at least %d",
						o, o.got[i], id.word, f.value)
					return
				}
				f.value = o.got[i]
			}
			if o.code == uint8(atomic.Sum) {
				f.value += o.value
			}
			floors[id] = f
		}
	}
}
