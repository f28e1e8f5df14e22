// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"fmt"

	"github.com/xdpfab/xdpfab/internal/matching"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// receive is a receive and what has come into it.
type receive struct {
	b       *mailbox
	id      int // among those of its mailbox, in posting order
	match   matching.Match
	buf     []byte   // followed by fringe bytes, outside of it
	pieces  [][]byte // of buf
	multi   bool
	claim   bool
	minFree int
	breaks  int // of the mailbox when it was posted, or the letter claimed
	came    []arrival
}

// arrival is a letter in a buffer.
type arrival struct {
	l  *letter
	b  []byte
	at int // where it is, if it is not at the beginning of its place in the buffer
}

// fringe is how many bytes follow a buffer.
const fringe = 64

func (r *receive) String() string {
	return fmt.Sprintf("receive %d of %v: %d bytes, %+v, multi %t, claim %t", r.id, r.b, len(r.buf), r.match,
		r.multi, r.claim)
}

// any reports whether the receive takes every message that is tagged, or not, as it is.
func (r *receive) any() bool {
	return !r.multi && !r.claim && r.match.AnySource && r.match.Ignore == ^uint64(0) && len(r.buf) >= longest
}

// takes reports whether the receive matches a letter.
func (r *receive) takes(l *letter) bool {
	return r.match.Tagged == l.tagged && (!l.tagged || (l.tag^r.match.Tag)&^r.match.Ignore == 0) &&
		(r.match.AnySource || r.match.From == l.o.from())
}

// newReceive returns a receive of so many bytes.
func (b *mailbox) newReceive(n int, m matching.Match) *receive {
	all := make([]byte, n+fringe)
	scribble(all)
	r := &receive{b: b, match: m, buf: all[:n]}
	r.pieces = [][]byte{r.buf}
	return r
}

// drawMatch draws what a receive takes: any message, a class of tags, or only those of
// one sender.
func (b *mailbox) drawMatch() matching.Match {
	w, d := b.n.w, b.n.w.dice
	m := matching.Match{Tagged: d.chance(0.5), Ignore: ^uint64(0), AnySource: true}
	if m.Tagged && d.chance(0.6) {
		m.Tag, m.Ignore = uint64(d.IntN(4)), 0xffffffff_00000000
	}
	if d.chance(0.2) {
		c := pick(d, w.anyNode().clients...)
		m.AnySource, m.From = false, (&op{peer: &peer{pair: &pair{c: c}}}).from()
	}
	return m
}

// draw draws a receive. Many are shorter than some letters.
func (b *mailbox) draw() *receive {
	d := b.n.w.dice
	n := pick(d, longest, longest, int(d.between(leastIdentity, 100)), int(d.between(leastIdentity, 3000)))
	r := b.newReceive(n, b.drawMatch())
	switch {
	case d.chance(0.2):
		r.multi, r.minFree = true, int(d.between(leastIdentity, int64(n)))
	case d.chance(0.3):
		half := d.IntN(n)
		r.pieces = [][]byte{r.buf[:half:half], r.buf[half:]}
	}
	return r
}

// post posts a receive, if there is room.
func (b *mailbox) post(r *receive) {
	w := b.n.w
	b.receives++
	if r.id = b.receives; !r.claim {
		r.breaks = b.breaks
	}
	b.posted = append(b.posted, r)
	b.posting = r
	err := b.q.Post(&matching.Receive{Match: r.match, Context: r, Buffers: r.pieces, Multi: r.multi, MinFree: r.minFree,
		Claim: r.claim})
	b.posting = nil
	w.trace.event("%v: %v", r, err)
	switch err {
	case nil:
		w.count(receivesPosted)
		for _, t := range b.taps {
			t.due = t.refused
		}
	case matching.ErrFull:
		if b.remove(r); r.claim {
			b.claims = append(b.claims, r) // for another time
		}
	case matching.ErrNotClaimed:
		if b.remove(r); !r.claim || b.breaks == r.breaks {
			w.fail("%v: %v", r, err)
		}
	default:
		w.fail("%v: %v", r, err)
	}
}

// remove records that a receive has completed, or was never posted.
func (b *mailbox) remove(r *receive) {
	for i, x := range b.posted {
		if x == r {
			b.posted = append(b.posted[:i], b.posted[i+1:]...)
			return
		}
	}
	b.n.w.fail("%v completes again", r)
}

// cancel cancels a receive.
func (b *mailbox) cancel(r *receive) {
	b.cancelling = r
	if b.q.Cancel(r) {
		b.n.w.count(receivesCancelled)
	}
	b.cancelling = nil
}

// look looks for a message that is held, and claims or discards it now and then.
func (b *mailbox) look() {
	w, d := b.n.w, b.n.w.dice
	m := b.drawMatch()
	found, ok := b.q.Peek(&m, matching.Look, nil)
	if !ok || !found.Tagged && !found.HasData {
		return
	}
	l := b.identify(&found, nil)
	if l == nil {
		return
	}
	w.count(peeks)
	switch b.checkHead(l, &found); {
	case l.came > 0 || l.claimed:
		w.fail("%v: is found, but has been delivered before", l)
	case d.chance(0.3):
		b.q.Peek(&m, matching.Discard, nil)
		w.trace.event("discarded: %v", l)
		b.delivered(l, nil)
	case d.chance(0.4):
		r := b.newReceive(longest, m)
		r.claim, r.breaks, l.claimed = true, b.breaks, true
		b.claims = append(b.claims, r)
		b.q.Peek(&m, matching.Claim, r)
		w.trace.event("claimed: %v", l)
	}
}

// fetch retrieves a message that was claimed.
func (b *mailbox) fetch() {
	if len(b.claims) == 0 {
		return
	}
	r := b.claims[0]
	b.claims = b.claims[1:]
	b.post(r)
}

// Deliver implements matching.Sink.
func (b *mailbox) Deliver(d *matching.Done) {
	w := b.n.w
	b.unread++
	r := d.Context.(*receive)
	w.trace.event("%v: %v, %d of %d bytes, released %t", r, d.Reason, d.Received, d.Length, d.Released)
	switch d.Reason {
	case matching.Received, matching.Truncated, matching.Misplaced:
		b.receive(r, d)
	case matching.Cancelled:
		if r != b.cancelling && !b.closing {
			w.fail("%v was cancelled, but nobody asked for that", r)
		}
	case matching.Lost:
		if !r.claim || r.breaks == b.breaks {
			w.fail("%v is %v, though no message broke off", r, d.Reason)
		}
	case matching.Spent:
		if !r.multi {
			w.fail("%v is %v, but not a multi-receive", r, d.Reason)
		}
	}
	if !r.multi || d.Released {
		b.remove(r)
		r.checkBuffers()
	}
	if b.drains {
		b.hear()
	}
}

// receive looks at the message that came into a receive.
func (b *mailbox) receive(r *receive, d *matching.Done) {
	w := b.n.w
	got := r.buf[:min(int(d.Received), len(r.buf))]
	room := len(r.buf)
	if r.multi {
		got, room = d.Buf, len(d.Buf)
	}
	l := b.identify(d, got)
	if l == nil {
		return
	}
	b.checkHead(l, d)
	came := arrival{l: l, b: got}
	if l.form != 0 {
		came = b.combined(r, l, d)
	} else if len(got) != int(d.Received) || len(got) != min(l.length, room) ||
		(d.Reason == matching.Truncated) != (len(got) < l.length) {
		w.fail("%v came into %v: %v, %d bytes", l, r, d.Reason, d.Received)
	}
	if !r.claim && !r.takes(l) {
		w.fail("%v came into %v, which does not match it", l, r)
	}
	r.came = append(r.came, came)
	if d.Reason == matching.Truncated {
		w.count(truncations)
	}
	if b.posting == r && l.match {
		w.fail("%v was here before %v", l, r)
	}
	b.delivered(l, r)
	b.checkOldest(l, r)
}

// checkBuffers looks at the buffers of a receive that has completed.
func (r *receive) checkBuffers() {
	w, end := r.b.n.w, 0
	for _, a := range r.came {
		if !bytes.Equal(a.b, a.l.becomes()[:len(a.b)]) {
			w.fail("%v: its bytes are not in %v", a.l, r)
		}
		end = max(end, a.at+len(a.b))
		if !r.multi && r.breaks == r.b.breaks && bytes.Count(r.buf[:a.at], []byte{poison}) != a.at {
			w.fail("%v: bytes before it were written in %v", a.l, r)
		}
	}
	beyond := r.buf[end:cap(r.buf)]
	if r.multi || len(r.came) == 0 { // what of a broken message came before may be there
		beyond = r.buf[len(r.buf):cap(r.buf)]
	}
	if r.breaks == r.b.breaks && bytes.Count(beyond, []byte{poison}) != len(beyond) ||
		bytes.Count(r.buf[len(r.buf):cap(r.buf)], []byte{poison}) != cap(r.buf)-len(r.buf) {
		w.fail("%v: bytes behind what came were written", r)
	}
	scribble(r.buf) // the caller has its memory back
}

// identify returns the letter that a completion is about.
func (b *mailbox) identify(d *matching.Done, got []byte) *letter {
	w, id := b.n.w, uint64(0)
	switch {
	case d.Tagged:
		id = d.Tag >> 32
	case d.HasData:
		id = d.Data >> 8
	case len(got) >= leastIdentity:
		id = uint64(got[0]) | uint64(got[1])<<8 | uint64(got[2])<<16 | uint64(got[3])<<24
	}
	if id == 0 || id > uint64(len(w.letters)) {
		w.fail("%v: %+v is about no letter", b, d)
		return nil
	}
	return w.letters[id-1]
}

// checkHead compares what a letter begins with.
func (b *mailbox) checkHead(l *letter, d *matching.Done) {
	w, p := b.n.w, l.o.peer
	if p.target != b.n || p.endpoint != b.endpoint || d.Length != uint64(l.length) || d.Tagged != l.tagged ||
		d.Tag != l.tag ||
		d.HasData != l.hasData || d.Atomic != (l.form != 0) || d.Data != l.data || d.From != (wire.Addr)(l.o.from()) {
		w.fail("%v came to %v as %+v", l, b, d)
	}
}
