// SPDX-License-Identifier: Apache-2.0

package matching

import "github.com/xdpfab/xdpfab/internal/wire"

// Match describes which messages a receive takes: the untagged ones, or those whose tag
// is Tag in all bits that are not in Ignore; and of all senders, or of one.
type Match struct {
	Tag, Ignore uint64
	Tagged      bool
	AnySource   bool      // FI_ADDR_UNSPEC
	From        wire.Addr // the only sender, unless AnySource
}

// matches reports whether a message is one of these, provided that both are tagged or
// both are not.
func (t *Match) matches(m *message) bool {
	return (!t.Tagged || (m.tag^t.Tag)&^t.Ignore == 0) && (t.AnySource || t.From == m.from)
}

// Receive is a receive to be posted.
type Receive struct {
	Match
	Context any // comes back in Done, and is what Cancel looks for; comparable with ==
	Note    any // comes back in Done as well
	// Buf is where the message goes. Buffers takes its place if they are several, filled
	// one after the other. They are the queue's until the receive has completed; the
	// slice of them is not.
	Buf     []byte
	Buffers [][]byte
	// Multi: the single buffer takes messages one behind another as
	// long as at least MinFree bytes are free (FI_MULTI_RECV). Each message has a
	// completion, and the last one to be delivered has Released set. A message that
	// is longer than what is free is truncated. A MinFree of zero is as one: a full
	// buffer is released.
	Multi   bool
	MinFree int
	// Reserved: Reserve has taken what the receive needs.
	Reserved bool
	// Claim: instead of what Match says, the receive takes the oldest message that
	// Peek has claimed for Context (FI_CLAIM).
	Claim bool
	// Silent: success needs no completion; it comes back in Done.
	Silent bool
}

// inlineBuffers is how many buffers a receive can have without allocation.
const inlineBuffers = 4

// receive is a receive that was posted. If it waits for messages it is in the queue's
// list posted, and has a place in the sink. Each message that goes into it has one too:
// that of the receive itself, unless the receive is a multi-receive that keeps waiting.
type receive struct {
	Match
	at       link[receive]
	sequence uint64 // in posting order
	context  any
	note     any
	buffers  [][]byte
	first    [inlineBuffers][]byte
	size     uint64 // bytes of all buffers
	filling  int    // messages going in; at most one unless multi
	claim    bool   // takes one message that was claimed, and no other
	silent   bool   // Receive.Silent

	multi   bool
	minFree uint64
	used    uint64 // bytes from the beginning that messages have or will have
	floor   uint64 // bytes from the beginning that complete messages have
	behind  bool   // waits for a place in the sink: messages that are held match it
}

// set fills in a node that is not in use.
func (n *receive) set(r *Receive, sequence uint64) {
	n.Match, n.sequence, n.context, n.note, n.claim, n.silent = r.Match, sequence, r.Context, r.Note, r.Claim, r.Silent
	n.multi, n.minFree, n.used, n.floor = r.Multi, uint64(max(r.MinFree, 1)), 0, 0
	n.buffers, n.size = append(n.first[:0], r.Buf), 0
	if len(r.Buffers) > 0 {
		n.buffers = append(n.first[:0], r.Buffers...)
	}
	for _, b := range n.buffers {
		n.size += uint64(len(b))
	}
}

// write copies data to an offset in the buffers; there is room for it.
func (n *receive) write(offset uint64, data []byte) {
	for _, b := range n.buffers {
		if size := uint64(len(b)); offset >= size {
			offset -= size
			continue
		}
		data = data[copy(b[offset:], data):]
		if offset = 0; len(data) == 0 {
			return
		}
	}
}

// Post posts a receive. If an unexpected message matches, the oldest one is taken at
// once, and if only a part of it is here, the rest goes directly into the buffers. A
// multi-receive takes as many as it can.
//
// Nothing has changed if there is an error: ErrFull, ErrClosed, ErrMulti, ErrNotClaimed.
func (q *Queue) Post(r *Receive) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if r.Multi && !r.fitsMany() {
		return ErrMulti
	}
	var m *message
	if r.Claim {
		if m = q.claimedFor(r.Context); m == nil {
			return ErrNotClaimed
		}
	}
	switch {
	case r.Reserved:
		q.reserved--
	case !q.provide():
		return ErrFull
	}
	n := q.receives.popFront()
	q.sequence++
	n.set(r, q.sequence)
	if m != nil {
		q.bind(n, m)
		q.move(m)
	} else {
		q.posted[index(n.Tagged)].pushBack(&n.at)
		q.offer(n)
	}
	q.makeRoom()
	return nil
}

// fitsMany reports whether the receive can be a multi-receive.
func (r *Receive) fitsMany() bool {
	buf := r.Buf
	if len(r.Buffers) > 0 {
		buf = r.Buffers[0]
	}
	return !r.Claim && len(r.Buffers) <= 1 && len(buf) >= max(r.MinFree, 1)
}

// Cancel cancels the oldest receive that was posted with the context, and reports whether
// there is one: it completes as cancelled. A receive into which a message is going is not
// cancelled; nor is a multi-receive while a message is going into it.
func (q *Queue) Cancel(context any) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	var found *receive
	for i := range q.posted {
		for e := q.posted[i].first; e != nil; e = e.next {
			if n := e.of; n.context == context && n.filling == 0 {
				if found == nil || n.sequence < found.sequence {
					found = n
				}
				break
			}
		}
	}
	if found == nil {
		return false
	}
	behind := found.behind
	q.cancel(found)
	if behind {
		q.offerAll() // younger receives waited behind it
	}
	q.makeRoom() // what a multi-receive had no place for can be held
	return true
}

// cancel completes a receive into which no message is going, as cancelled.
func (q *Queue) cancel(n *receive) {
	q.unlist(n)
	q.conclude(n, Cancelled)
}

// conclude completes a receive that left the posted list and into which no message is
// going.
func (q *Queue) conclude(n *receive, why Reason) {
	q.done = Done{Context: n.context, Note: n.note, Reason: why, Tagged: n.Tagged, Released: n.multi}
	q.freeReceive(n)
	q.deliver()
}

// freeReceive gives back a receive that is not posted and into which nothing goes.
func (q *Queue) freeReceive(n *receive) {
	n.context, n.note, n.buffers = nil, nil, nil
	clear(n.first[:])
	q.receives.pushFront(&n.at)
}

// waits reports whether a receive is posted and waits for messages.
func (q *Queue) waits(n *receive) bool { return n.at.in == &q.posted[index(n.Tagged)] }

// list puts a receive back at its place in posting order.
func (q *Queue) list(n *receive) {
	l := &q.posted[index(n.Tagged)]
	e := l.first
	for e != nil && e.of.sequence < n.sequence {
		e = e.next
	}
	l.insertBefore(&n.at, e)
}

// unlist takes a receive out of the posted ones.
func (q *Queue) unlist(n *receive) {
	n.at.leave()
	q.setBehind(n, false)
}

// setBehind records whether a multi-receive waits for a place in the sink while messages
// that are held match it.
func (q *Queue) setBehind(n *receive, behind bool) {
	if n.behind == behind {
		return
	}
	n.behind = behind
	if behind {
		q.behind++
	} else {
		q.behind--
	}
}
