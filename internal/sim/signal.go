// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/binary"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Some remote writes have a signal: an addition of 1 to a word of their own, which is one
// of the region of fences. So the word tells whether the signal ran, and how often. As
// soon as it has run, all that was written is in memory, unless a later write is.

// signals makes a write one with a signal, if the target can have it.
func (o *op) signals(w *world) {
	t := o.peer.target
	const needs = wire.FeatureMemory | wire.FeatureSignals
	if o.verb != wire.VerbWrite || o.peer.c.n.features()&t.features()&needs != needs || w.plan.attends != 0 ||
		w.fenced[t.index] == regionWords[fenceRegion] || w.dice.chance(0.5) {
		return
	}
	w.fenced[t.index]++
	o.verb, o.signal = wire.VerbSignal, w.fenced[t.index]
	if w.dice.chance(0.1) {
		o.refused, o.lost = true, true
	}
	t.signalled = append(t.signalled, o)
}

// setSignal gives an entry its signal: one in no region, if it has to be refused. Half of
// the entries name the registrations that they mean.
func (o *op) setSignal(e *engine.Submission) {
	x := wire.Signal{Key: o.peer.target.regions[fenceRegion].key(), Offset: uint64(8 * (o.signal - 1)),
		Op: uint8(atomic.Sum), Datatype: uint8(atomic.Uint64), Operand: 1}
	if t := o.peer.target.regions; o.value%2 == 0 && t[copyRegion].reg != nil && t[fenceRegion].reg != nil {
		o.named = true
		e.Incarnation, x.Incarnation = t[copyRegion].reg.Incarnation(), t[fenceRegion].reg.Incarnation()
	}
	if o.lost {
		x.Offset = uint64(8 * regionWords[fenceRegion])
	}
	e.SetSignal(&x)
}

// lookAtSignals checks what was written with the signals that have come to the node.
func (n *node) lookAtSignals() {
	left := n.signalled[:0]
	for _, o := range n.signalled {
		if n.regions[fenceRegion].word(o.signal-1).lo == 0 {
			left = append(left, o)
			continue
		}
		n.w.count(signalsCame)
		for i := range o.count {
			b := n.regions[copyRegion].bytes[8*(o.first+i):]
			v := binary.LittleEndian.Uint64(b)
			if from := n.w.writers[v>>copyBits]; from == nil || from != o && from.before(o) {
				n.w.fail("word %d of copies of %v is %#x when the signal of %v has come", o.first+i, n, v, o)
			}
		}
	}
	n.signalled = left
}
