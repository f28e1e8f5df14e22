// SPDX-License-Identifier: Apache-2.0

package matching

import "github.com/xdpfab/xdpfab/internal/wire"

// message is a message that was admitted, until its receive has completed or it is
// dropped. It is in one of these states:
//
//	held       it is in the queue's list held: no receive matches it
//	claimed    it is in the list claimed: one receive to come will take it
//	going in   into is the receive that takes it
//	discarded  not wanted, and the rest of it is still coming
type message struct {
	at      link[message]
	from    wire.Addr
	length  uint64 // bytes of the whole message
	tag     uint64 // matched against those of tagged receives
	data    uint64 // remote CQ data
	tagged  bool   // sent by fi_tsend and its like
	hasData bool   // data is there

	got       uint64 // bytes that have come
	into      *receive
	offset    uint64 // where it begins in the buffers of into
	size      uint64 // bytes of it that fit into them
	context   any    // for which it is claimed
	to        any    // see Inflow.To
	discarded bool
	op        operation // of a tagged atomic

	reserved     int // chunks of the budget
	chunks, tail *chunk
	inline       [InlineSize]byte
}

// place copies data, which is at offset at of the message, into the receive's buffers.
// What does not fit is dropped. The data of a tagged atomic, whole elements, are combined
// with the buffer, if all of it fits.
func (m *message) place(at uint64, data []byte) {
	switch {
	case m.op.target != nil:
		m.op.kernel(m.op.target[at:at+uint64(len(data))], data, nil, nil)
	case m.op.is:
	case at < m.size:
		m.into.write(m.offset+at, data[:min(uint64(len(data)), m.size-at)])
	}
}

// newMessage returns a message from an endpoint at the address, of which nothing has come
// yet. Besides those that are held, which hold counts, there is at most one for each
// inflow.
func (q *Queue) newMessage(w *wire.Message, from wire.Addr) *message {
	m := q.messages.popFront()
	if m == nil {
		m = &message{}
		m.at.of = m
	}
	m.from, m.length, m.got = from, w.Length, 0
	m.from.Endpoint = w.Source
	m.tag, m.tagged, m.data, m.hasData = w.Tag, w.Tagged, w.Data, w.HasData
	m.op = operationOf(&w.Atomic)
	return m
}

// freeMessage gives back a message that is in no list and has no memory.
func (q *Queue) freeMessage(m *message) {
	m.into, m.context, m.to, m.discarded, m.op = nil, nil, nil, false, operation{}
	q.messages.pushFront(&m.at)
}

// hold finds a place among the unexpected messages for m, and memory for all of it.
func (q *Queue) hold(m *message) bool {
	if q.holding()+int(q.leased.Messages) >= q.cfg.Unexpected {
		q.cramped = true
		return false
	}
	n, ok := q.memory.reserve(m.length)
	if !ok {
		q.cramped = true
		return false
	}
	m.reserved = n
	q.held[index(m.tagged)].pushBack(&m.at)
	return true
}

// holding returns how many messages are held, claimed ones among them.
func (q *Queue) holding() int { return q.held[0].n + q.held[1].n + q.claimed.n }

// drop drops a message that is held. If the rest of it is still coming, that is dropped
// too.
func (q *Queue) drop(m *message) {
	m.at.leave()
	q.memory.empty(m)
	if m.got == m.length {
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
