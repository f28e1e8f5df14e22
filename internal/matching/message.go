// SPDX-License-Identifier: Apache-2.0

package matching

import "github.com/xdpfab/xdpfab/internal/wire"

// Head is what a message begins with.
type Head struct {
	Length  uint64 // bytes of the whole message
	Tag     uint64 // matched against those of tagged receives
	Data    uint64 // remote CQ data
	Tagged  bool   // sent by fi_tsend and its like
	HasData bool   // Data is there
	Match   bool   // FI_MATCH_COMPLETE: admitted only if a posted receive takes it
}

// message is a message that has begun, until its receive has completed or it is dropped.
// It is in one of these states:
//
//	held       it is in the queue's list held: no receive matches it
//	claimed    it is in the list claimed: one receive to come will take it
//	going in   into is the receive that takes it
//	discarded  nobody wants it, and the rest of it is still coming
type message struct {
	Head
	at        link[message]
	from      wire.Addr
	got       uint64 // bytes that have come
	into      *receive
	offset    uint64 // where it begins in the buffers of into
	size      uint64 // bytes of it that fit into them
	context   any    // for which it is claimed
	discarded bool

	reserved     int // chunks of the budget
	chunks, tail *chunk
	inline       [InlineSize]byte
}

// place copies data, which is at offset at of the message, into the receive's buffers.
// What does not fit is dropped.
func (m *message) place(at uint64, data []byte) {
	if at < m.size {
		m.into.write(m.offset+at, data[:min(uint64(len(data)), m.size-at)])
	}
}

// newMessage returns a message of which nothing has come yet. Those that are held are
// counted by hold: besides them there are as many as sessions have in progress and one
// frame has.
func (q *Queue) newMessage(h *Head, from wire.Addr) *message {
	m := q.messages.popFront()
	if m == nil {
		m = &message{}
		m.at.of = m
	}
	m.Head, m.from, m.got = *h, from, 0
	return m
}

// freeMessage gives back a message that is in no list and has no memory.
func (q *Queue) freeMessage(m *message) {
	m.into, m.context, m.discarded = nil, nil, false
	q.messages.pushFront(&m.at)
}

// hold finds a place among the unexpected messages for m, and memory for all of it.
func (q *Queue) hold(m *message) bool {
	if q.holding() >= q.cfg.Unexpected {
		return false
	}
	n, ok := q.memory.reserve(m.Length)
	if ok {
		m.reserved = n
		q.held[index(m.Tagged)].pushBack(&m.at)
	}
	return ok
}

// holding returns how many messages are held, claimed ones among them.
func (q *Queue) holding() int { return q.held[0].n + q.held[1].n + q.claimed.n }

// discard drops a message that is held. If the rest of it is still coming, that is
// dropped too.
func (q *Queue) discard(m *message) {
	m.at.leave()
	q.memory.empty(m)
	if m.got == m.Length {
		q.freeMessage(m)
	} else {
		m.discarded = true
	}
	q.makeRoom()
}

// index is where a queue has its lists of tagged or of untagged ones.
func index(tagged bool) int {
	if tagged {
		return 1
	}
	return 0
}
