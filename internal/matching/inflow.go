// SPDX-License-Identifier: Apache-2.0

package matching

import "github.com/xdpfab/xdpfab/internal/wire"

// Inflow is the messages of one session, at most one of which is in progress: it has
// begun and is not complete. It belongs to the thread of the session.
type Inflow struct {
	q        *Queue
	at       link[Inflow]
	from     wire.Addr
	current  *message   // in progress
	admitted []*message // those that begin in this frame
	begun    int        // how many of these have begun
	moved    bool       // a piece has come in this frame
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
		return m.got, m.Length - m.got
	}
	return 0, 0
}

// Continues reports whether n bytes at the offset are the next piece of the message in
// progress. A frame that has such a piece has it first, and begins other messages only if
// the piece is the last one of its message. It needs no lock.
func (in *Inflow) Continues(offset, n uint64) bool {
	has, lacks := in.InProgress()
	return n > 0 && n <= lacks && offset == has
}

// Begin begins a frame and locks the queue, which Abort or End unlocks. The caller has
// looked at the whole frame: each piece but the last one ends its message.
func (in *Inflow) Begin() {
	in.q.mu.Lock()
	in.admitted, in.begun, in.moved = in.admitted[:0], 0, false
}

// Admit finds the place for a message that begins in the frame: the oldest posted receive
// that it matches, or one among the unexpected messages. It returns false if there is no
// room, or the queue is closed: then Abort must follow, and the frame may come again when
// Config.Room is called. Messages are admitted in their order.
func (in *Inflow) Admit(w *wire.Message) bool {
	from := in.from
	from.Endpoint = w.Source
	return in.admit(&Head{Length: w.Length, Tag: w.Tag, Data: w.Data, Tagged: w.Tagged, HasData: w.HasData, Match: w.Match}, from)
}

// admit is Admit for a message from an endpoint.
func (in *Inflow) admit(h *Head, from wire.Addr) bool {
	q := in.q
	if q.closed {
		return false
	}
	m := q.newMessage(h, from)
	n := q.find(m)
	var ok bool
	switch {
	case n == nil:
		ok = !h.Match && q.hold(m)
	case n.behind: // older messages wait for it
	default:
		ok = q.bind(n, m)
	}
	if !ok {
		q.waiting = true
		q.freeMessage(m)
		return false
	}
	in.admitted = append(in.admitted, m)
	return true
}

// Abort undoes all that Admit did for this frame, and unlocks the queue.
func (in *Inflow) Abort() {
	in.undo()
	in.q.mu.Unlock()
}

// Put takes the next piece: of the message in progress or, if there is none, of the next
// one that was admitted. Messages of no bytes have one piece of no bytes. A message that
// is complete now is delivered, or is held as a whole. Put returns ErrPiece if no message
// is there, or lacks so many bytes; then it has changed nothing, and the session must
// end.
func (in *Inflow) Put(data []byte) error {
	m, begins := in.current, 0
	if m == nil {
		if in.begun == len(in.admitted) {
			return ErrPiece
		}
		m, begins = in.admitted[in.begun], 1
	}
	if uint64(len(data)) > m.Length-m.got {
		return ErrPiece
	}
	in.current, in.begun, in.moved = m, in.begun+begins, true
	switch {
	case m.into != nil:
		m.place(m.got, data)
	case !m.discarded:
		in.q.memory.store(m, data)
	}
	m.got += uint64(len(data))
	if m.got == m.Length {
		in.current = nil
		in.q.arrived(m)
	}
	return nil
}

// arrived says that the last byte of a message has come.
func (q *Queue) arrived(m *message) {
	switch {
	case m.into != nil:
		q.complete(m)
	case m.discarded:
		q.freeMessage(m)
	}
}

// End ends the frame and unlocks the queue. It returns ErrNoPiece if there was no piece
// of a message that was admitted: that is undone, and the session must end.
func (in *Inflow) End() error {
	q := in.q
	defer q.mu.Unlock()
	if in.moved && q.starved.Load() {
		// A multi-receive that lacked places may be full now: then others can
		// hold what was for it. A frame of which nothing came does not do this,
		// or it would call itself, and two of them each other, for ever.
		q.makeRoom()
	}
	if in.begun < len(in.admitted) {
		in.undo()
		return ErrNoPiece
	}
	return nil
}

// undo takes back the messages that were admitted and have not begun, the last one first.
func (in *Inflow) undo() {
	q := in.q
	for i := len(in.admitted) - 1; i >= in.begun; i-- {
		m := in.admitted[i]
		if m.into != nil {
			q.unbind(m)
		} else {
			m.at.leave()
			q.memory.empty(m)
		}
		q.freeMessage(m)
	}
	in.admitted = in.admitted[:in.begun]
}

// Drop drops the message in progress, as Close does: its sender has let go of it. It is
// called between Begin and End.
func (in *Inflow) Drop() { in.drop() }

// Close says that the session has ended. A message in progress is dropped: its receive
// goes back to its place among the posted ones, and takes the next message that it
// matches, also one that is held. Nothing else may be called afterwards. It may be called
// twice.
func (in *Inflow) Close() {
	q := in.q
	q.mu.Lock()
	defer q.mu.Unlock()
	in.at.leave()
	in.drop()
}

// drop drops the message in progress, if there is one.
func (in *Inflow) drop() {
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
