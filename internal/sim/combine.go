// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Some letters with tags are tagged atomics: their bytes are added to those in the buffer
// of their receive, at an offset. Some do not fit there.

// combination is what a letter has that is a tagged atomic.
type combination struct {
	form   wire.Verb // 0: it is none
	shift  int       // where it begins in the buffer, bytes
	known  bool      // both nodes know such letters, as far as the client knows
	misfit bool      // it came to a receive that it does not fit
	before []byte    // what it found there
}

// mostCombined is the most bytes of a tagged atomic, which every frame can carry.
const mostCombined = 100

// drawCombination makes a letter with a tag a tagged atomic, perhaps.
func (l *letter) drawCombination(w *world) {
	d, o := w.dice, l.o
	if !l.tagged || l.length == 0 || !d.chance(0.4) {
		return
	}
	l.length = 1 + l.length%mostCombined
	l.form = pick(d, wire.VerbAtomic, wire.VerbAtomic, wire.VerbFetch)
	l.shift = pick(d, 0, 0, d.IntN(300), longest)
	const needs = wire.FeatureMessages | wire.FeatureTaggedAtomics
	l.known = o.peer.c.n.features()&o.peer.target.features()&needs == needs
	l.match = l.match || l.form == wire.VerbFetch
	o.verb, o.datatype = l.form.Tagged(), atomic.Uint8
	if o.fetches() {
		o.buf = make([]byte, l.length)
	}
}

// combined looks at a tagged atomic that came to a receive.
func (b *mailbox) combined(r *receive, l *letter, d *matching.Done) arrival {
	w, end := b.n.w, l.shift+l.length
	w.count(combinations)
	want := matching.Received
	switch {
	case end > len(r.buf):
		want = matching.Truncated
	case len(r.pieces) > 1 && l.shift < len(r.pieces[0]) && end > len(r.pieces[0]):
		want = matching.Misplaced
	}
	if d.Reason != want && !(r.multi && d.Reason == matching.Truncated) { // it may have come behind others
		w.fail("%v came into %v: %v, want %v", l, r, d.Reason, want)
	}
	if d.Reason != matching.Received {
		l.misfit = true
		if d.Received != 0 {
			w.fail("%v does not fit %v, but %d bytes came", l, r, d.Received)
		}
		return arrival{l: l}
	}
	at := int(d.Offset)
	if len(d.Buf) != l.length || int(d.Received) != l.length || at < l.shift || !r.multi && at != l.shift ||
		&r.buf[at] != &d.Buf[0] {
		w.fail("%v came into %v: %d bytes at %d", l, r, d.Received, at)
		return arrival{l: l}
	}
	l.before = bytes.Clone(d.Buf)
	for i, x := range l.contents() {
		l.before[i] -= x
	}
	if r.breaks == b.breaks && bytes.Count(l.before, []byte{poison}) != l.length {
		w.fail("%v found %x in %v, where nothing had been written", l, l.before, r)
	}
	return arrival{l, d.Buf, at}
}

// becomes returns what the letter leaves in a buffer.
func (l *letter) becomes() []byte {
	b := l.contents()
	for i, x := range l.before {
		b[i] += x
	}
	return b
}

// misfits reports that an operation has failed because it is a tagged atomic that does
// not fit its receive, or that the target does not know.
func (o *op) misfits() bool {
	switch o.result.Status {
	case wire.StatusOutOfBounds, wire.StatusMisaligned, wire.StatusUnsupported:
		return o.letter != nil && o.letter.form != 0
	}
	return false
}

// checkCombination checks the outcome of a tagged atomic.
func (w *world) checkCombination(o *op) {
	l, status := o.letter, o.result.Status
	if l.form == 0 {
		return
	}
	forgot := o.peer.target.forgot(o.peer.since, w.now)
	switch {
	case o.succeeded() && !l.known && !forgot:
		w.fail("%v succeeded, but its target does not know tagged atomics", l)
	case o.succeeded() && l.misfit && l.match:
		w.fail("%v succeeded, but did not fit its receive", l)
	case status == wire.StatusUnsupported && l.known && !forgot:
		w.fail("%v: unsupported, though its target knows tagged atomics", l)
	case (status == wire.StatusOutOfBounds || status == wire.StatusMisaligned) && !l.misfit:
		w.fail("%v: status %v, though it did not come to a receive that it does not fit", l, status)
	case o.succeeded() && o.fetches() && !o.peer.target.died(o.call):
		got := make([]byte, 0, l.length)
		for _, v := range o.got {
			got = append(got, byte(v.lo))
		}
		if !bytes.Equal(got, l.before) {
			w.fail("%v returned %x, but found %x", l, got, l.before)
		}
	}
}

// fillCombination writes what an entry of a tagged atomic has besides that of a letter.
func (l *letter) fillCombination(e *engine.Submission) {
	e.Offset, e.Opcode, e.Result = uint64(l.shift), uint8(atomic.Sum), l.o.buf
}
