// SPDX-License-Identifier: Apache-2.0

package matching

import "github.com/xdpfab/xdpfab/internal/wire"

// Inflow is the messages of one session, at most one of which is in progress: it was
// admitted and is not complete. It belongs to the thread of the session.
type Inflow struct {
	// To is what the messages are sent to, for Done: queues may be shared. It is set
	// before the first one comes.
	To any

	q       *Queue
	at      link[Inflow]
	from    wire.Addr
	current *message // in progress
}

// NewInflow returns the messages of a session with the peer at the address.
func (q *Queue) NewInflow(from wire.Addr) *Inflow {
	q.mu.Lock()
	defer q.mu.Unlock()
	in := &Inflow{q: q, from: from}
	in.at.of = in
	q.inflows.pushBack(&in.at)
	return in
}

// InProgress returns how many bytes the message in progress has, and how many it lacks:
// at least one, or zero if no message is in progress. It needs no lock.
func (in *Inflow) InProgress() (has, lacks uint64) {
	if m := in.current; m != nil {
		return m.got, m.length - m.got
	}
	return 0, 0
}

// Begin begins a frame, or resumes one at a message that was refused. It locks the queue,
// which End unlocks.
func (in *Inflow) Begin() { in.q.mu.Lock() }

// Admit finds the place for a message that begins, when none is in progress: the oldest
// posted receive that it matches, or a place among the unexpected messages. Its first
// piece follows with Put.
//
// Admit returns false, and has changed nothing, if there is no room or the queue is
// closed. The caller then ends the frame and keeps it. When Config.Room is called, it
// begins the frame again and admits the same message first: what came before it in the
// frame has run. Nothing is tried again once the queue is closed.
func (in *Inflow) Admit(w *wire.Message) bool {
	q := in.q
	if q.closed {
		return false
	}
	m := q.newMessage(w, in.from)
	m.to = in.To
	if !q.accept(m, w.Match) {
		q.freeMessage(m)
		q.waiting = true
		return false
	}
	in.current = m
	return true
}

// accept finds the place for a message that begins: one that must match is not held. It
// returns false, and has changed nothing, if there is no room.
func (q *Queue) accept(m *message, mustMatch bool) bool {
	switch n := q.find(m); {
	case n == nil:
		return !mustMatch && q.hold(m)
	case n.behind: // older messages wait for it
		return false
	default:
		return q.bind(n, m)
	}
}

// Fits is true: there is room for a message from its beginning on.
func (in *Inflow) Fits(int) bool { return true }

// Put takes the next piece of the message in progress; a message of no bytes has one
// piece of no bytes. A message that is complete now is delivered, or is held as a whole.
// The caller has looked at the frame: bytes that the message does not lack are dropped.
func (in *Inflow) Put(piece []byte) {
	m := in.current
	if m == nil {
		return
	}
	piece = piece[:min(uint64(len(piece)), m.length-m.got)]
	switch {
	case m.into != nil:
		m.place(m.got, piece)
	case !m.discarded:
		in.q.memory.store(m, piece)
	}
	m.got += uint64(len(piece))
	if m.got == m.length {
		in.current = nil
		in.q.arrived(m)
	}
}

// arrived is called when the last byte of a message has come.
func (q *Queue) arrived(m *message) {
	switch {
	case m.into != nil:
		q.complete(m)
	case m.discarded:
		q.freeMessage(m)
	}
}

// End ends the frame, or interrupts it at a message that was refused, and unlocks the
// queue.
func (in *Inflow) End() { in.q.mu.Unlock() }

// Drop drops the message in progress, if there is one: its sender has let go of it. Its
// receive goes back to its place among the posted ones, and takes the next message that
// it matches, also one that is held. Drop is called between Begin and End.
func (in *Inflow) Drop() {
	q, m := in.q, in.current
	if m == nil {
		return
	}
	in.current = nil
	if n := m.into; n != nil {
		q.unbind(m)
		if q.waits(n) {
			q.offer(n)
		}
	} else {
		m.at.leave()
		q.memory.empty(m)
	}
	q.freeMessage(m)
	q.catchUp() // a place may have been returned
	q.makeRoom()
}

// Close is called when the session has ended: a message in progress is dropped. Nothing
// else may be called afterwards. It may be called twice.
func (in *Inflow) Close() {
	in.q.mu.Lock()
	defer in.q.mu.Unlock()
	in.at.leave()
	in.Drop()
}
