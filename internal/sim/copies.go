// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Remote reads and writes are of words of one region, which nothing else changes. Each
// word that is written says which write it is of and which word it is, so that whoever
// finds it can tell whether it may be there: whole, in its place, from a write that may
// have run, and not overwritten.

// copyBits is the number of low bits of a word that say which one it is.
const copyBits = 10

// drawCopy makes o a remote read or write, mostly of several frames.
func (o *op) drawCopy(w *world) {
	d, words := w.dice, regionWords[copyRegion]
	o.region, o.first = copyRegion, d.IntN(words)
	o.count = 1 + d.IntN(words-o.first)
	if d.chance(0.1) {
		o.refused, o.count = true, words-o.first+1 // one too many
	}
	o.verb, o.code = pick(d, wire.VerbWrite, wire.VerbRead), uint8(atomic.Read)
	if o.verb == wire.VerbWrite {
		o.code = uint8(atomic.Write)
		w.copied = append(w.copied, o)
		o.value = uint64(len(w.copied)) * 0x9e3779b97f4a7c15 >> copyBits // unlike any other in all its bytes
		w.writers[o.value] = o
		o.signals(w)
	}
}

// copies reports whether the operation is a remote read or write.
func (o *op) copies() bool { return o.verb.Transfer() }

// contents returns what a remote write puts into its words.
func (o *op) contents() (b []byte) {
	for i := range o.count {
		b = binary.LittleEndian.AppendUint64(b, o.value<<copyBits|uint64(o.first+i))
	}
	return b
}

// covers reports whether the operation is about a word.
func (o *op) covers(word int) bool { return o.first <= word && word < o.first+o.count }

// before reports whether o took effect before another operation, for certain: it had
// completed when the other was posted, or both are of a pair that has an order.
func (o *op) before(other *op) bool {
	return o.succeeded() && o.ret < other.call ||
		o.peer.pair == other.peer.pair && o.seq < other.seq && !o.peer.c.anyOrder
}

// checkCopies checks all words that remote reads of a node's memory found, and those that
// are there at the end.
func (w *world) checkCopies(n *node) {
	last := &op{peer: &peer{pair: &pair{c: n.clients[0], target: n, id: -1}}, region: copyRegion,
		count: regionWords[copyRegion], call: forever, ret: forever}
	for i := range last.count {
		last.got = append(last.got, n.regions[copyRegion].word(i))
	}
	readers := []*op{last}
	for _, p := range w.pairs {
		for _, o := range p.ops {
			if p.target == n && o.verb == wire.VerbRead && o.succeeded() {
				readers = append(readers, o)
			}
		}
	}
	for _, o := range readers {
		for i, v := range o.got {
			if w.checkCopy(o, o.first+i, v.lo); w.failure != nil {
				return
			}
		}
	}
}

// checkCopy checks a word that an operation found.
func (w *world) checkCopy(o *op, word int, v uint64) {
	n := o.peer.target
	from := w.writers[v>>copyBits]
	switch {
	case v == 0: // as it was at first
		from = nil
	case from == nil || int(v&(1<<copyBits-1)) != word:
		w.fail("word %d of copies of %v was %#x, which nothing wrote there: it was found by %v", word, n, v, o)
		return
	case !from.covers(word) || from.peer.target != n || from.refused || !from.succeeded() && !from.mayHaveRun() ||
		from.call > o.ret:
		w.fail("word %d of copies of %v was of %v, which cannot have written it: it was found by %v", word, n, from, o)
		return
	}
	for _, x := range w.copied {
		if x == from || x.peer.target != n || !x.covers(word) || !x.succeeded() || !x.before(o) ||
			n.regions[copyRegion].wiped(x.call, o.ret) {
			continue
		}
		if from == nil || from.before(x) {
			w.fail("word %d of copies of %v, found by %v, was %#x, but %v had overwritten that", word, n, o, v, x)
			return
		}
	}
}
