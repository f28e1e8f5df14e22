// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// attendant hands the frames of one session to the guest. It implements
// session.MobileAttendant. Tickets are what the guest has to answer, in their order; a
// ticket is the psn of its frame, and the session, by its number, the generation that it
// belongs to. The Arrivals guard them.
type attendant struct {
	a       *Arrivals
	on      *atomic.Bool // the guest attends to the endpoint
	head    record
	pair    *attended
	tickets []ticket     // the oldest first
	owed    atomic.Int32 // tickets that are not answered
	closed  bool         // nobody waits for the answers
	op      int          // of the oldest ticket, that Next returns
	at      int          // where its result begins
}

// ticket is a frame that was handed over.
type ticket struct {
	PSN   uint32
	Sizes []uint16 // of the results of its operations in memory, if they succeed
	Said  []byte   // the answer; empty if there is none yet
}

// attended is all sessions of one origin with one endpoint of the guest.
type attended struct {
	key  pairOf
	owed atomic.Int32 // tickets that are not answered
	of   int          // attendants
}

type pairOf struct {
	endpoint uint16
	origin   uint64
}

// mostTickets bounds what a guest has been handed, and not answered.
const mostTickets = 1 << 14

// NewAttendant returns what hands the frames of a session over that an origin at an
// address has begun with an endpoint of the guest, as long as on says so.
func (a *Arrivals) NewAttendant(endpoint uint16, from wire.Addr, origin uint64, on *atomic.Bool) session.Attendant {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.sessions++
	return a.attendant(a.sessions, pairOf{endpoint, origin}, from, on)
}

// attendant makes one of a number. a.mu is held.
func (a *Arrivals) attendant(number uint64, key pairOf, from wire.Addr, on *atomic.Bool) *attendant {
	p := a.pairs[key]
	if p == nil {
		p = &attended{key: key}
		a.pairs[key] = p
	}
	p.of++
	t := &attendant{a: a, on: on, pair: p,
		head: record{Kind: kindOperate, Endpoint: key.endpoint, Session: number}}
	t.head.from(from)
	a.attends[number] = t
	return t
}

// remove takes an attendant off the table to which nothing comes any more. a.mu is held.
func (t *attendant) remove() {
	a, p := t.a, t.pair
	if a.attends[t.head.Session] != t {
		return
	}
	delete(a.attends, t.head.Session)
	p.owed.Add(-t.owed.Load())
	if p.of--; p.of == 0 {
		delete(a.pairs, p.key)
	}
}

// Attends implements session.Attendant.
func (t *attendant) Attends() bool { return t.on.Load() && !t.a.gone.Load() }

// Alone implements session.Attendant. What a guest owes that has gone will never run.
func (t *attendant) Alone() bool {
	all := t.pair.owed.Load() // before those of this session, which may be answered now
	return all <= t.owed.Load() || t.a.gone.Load()
}

// Gone implements session.Attendant.
func (t *attendant) Gone() bool { return t.a.gone.Load() }

// Hand implements session.Attendant.
func (t *attendant) Hand(psn uint32, payload []byte, ops int) bool {
	a := t.a
	a.mu.Lock()
	defer a.mu.Unlock()
	x := t.place()
	x.PSN = psn
	n := t.flatten(x, payload, ops)
	if a.owed >= mostTickets || !a.fits(spanOf(len(a.flat))) {
		t.tickets = t.tickets[:len(t.tickets)-1]
		return false
	}
	a.owed++
	t.owed.Add(1)
	t.pair.owed.Add(1)
	r := t.head
	r.Tag, r.Count = uint64(psn), uint32(n)
	a.put(&r, a.flat, nil)
	a.show()
	return true
}

// place appends a ticket, with the memory of one that was taken.
func (t *attendant) place() *ticket {
	n := len(t.tickets)
	t.tickets = slices.Grow(t.tickets, 1)[:n+1]
	x := &t.tickets[n]
	*x = ticket{Sizes: x.Sizes[:0], Said: x.Said[:0]}
	return x
}

// flatten puts the operations in memory of a frame into a.flat, and returns their number.
func (t *attendant) flatten(x *ticket, payload []byte, ops int) (n int) {
	t.a.flat = t.a.flat[:0]
	var r wire.RecordReader
	rec := &t.a.rec
	for r.Reset(payload, ops); r.Next(rec); {
		if !rec.Verb.Array() {
			continue // the host executes it when the others are answered
		}
		for i := range rec.Ops() {
			rec.Element(i)
			t.a.flat = appendOperation(t.a.flat, rec)
			x.Sizes = append(x.Sizes, uint16(rec.Verb.ResultLen(rec.Datatype, rec.Count)))
			n++
		}
	}
	return n
}

// Answered implements session.Attendant.
func (t *attendant) Answered() bool {
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	if len(t.tickets) == 0 || len(t.tickets[0].Said) == 0 {
		return false
	}
	t.op, t.at = 0, len(t.tickets[0].Sizes)*saidLen
	return true
}

// Next implements session.Attendant. The answer was checked, and stays as it is.
func (t *attendant) Next() (wire.Status, []byte) {
	answer := t.tickets[0].Said
	s := saidAt(answer, t.op)
	result := answer[t.at : t.at+int(s.Length)]
	t.op, t.at = t.op+1, t.at+int(s.Length)
	return s.Status, result
}

// Take implements session.Attendant.
func (t *attendant) Take() {
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	first := t.tickets[0]
	last := copy(t.tickets, t.tickets[1:])
	t.tickets[last], t.tickets = first, t.tickets[:last] // its memory is for the next one
}

// Close implements session.Attendant. What is owed still keeps later sessions of the pair
// from overtaking it.
func (t *attendant) Close() {
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	if t.closed = true; t.owed.Load() == 0 {
		t.remove()
	}
}

// Answer takes what the guest says of a ticket. An error means that the guest has broken
// a rule.
func (a *Arrivals) Answer(number, psn uint64, answer []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.attends[number]
	if t == nil || t.owed.Load() == 0 {
		return fmt.Errorf("an answer for session %d: nothing of it is to be answered", number)
	}
	x := &t.tickets[len(t.tickets)-int(t.owed.Load())]
	if uint64(x.PSN) != psn {
		return fmt.Errorf("an answer with ticket %d of session %d: want %d, the oldest that is not answered", psn,
			number, x.PSN)
	}
	said := append(x.Said[:0], answer...) // the guest may change it
	if err := x.check(said); err != nil {
		return err
	}
	x.Said = said
	a.owed--
	t.owed.Add(-1)
	t.pair.owed.Add(-1)
	if t.closed && t.owed.Load() == 0 {
		t.remove()
	}
	a.refused.Store(true) // its session waits, or one behind it
	return nil
}

// check reports what is wrong with an answer.
func (x *ticket) check(answer []byte) error {
	rest := len(answer) - len(x.Sizes)*saidLen
	if rest < 0 {
		return fmt.Errorf("an answer of %d bytes: want %d for each of %d operations, and their results", len(answer),
			saidLen, len(x.Sizes))
	}
	for i, size := range x.Sizes {
		s := saidAt(answer, i)
		if !maySay(s.Status) {
			return fmt.Errorf("an answer with %v for operation %d: want what executing it in memory can end with",
				s.Status, i)
		}
		want := size
		if s.Status != wire.StatusOK {
			want = 0
		}
		if s.Length != want {
			return fmt.Errorf("an answer with a result of %d bytes for operation %d: want %d", s.Length, i, want)
		}
		rest -= int(want)
	}
	if rest != 0 {
		return fmt.Errorf("an answer with %d bytes that belong to no operation: want its results alone", rest)
	}
	return nil
}

// maySay reports whether a guest can say that an operation ended so.
func maySay(s wire.Status) bool {
	switch s {
	case wire.StatusOK, wire.StatusNoKey, wire.StatusNoAccess, wire.StatusOutOfBounds, wire.StatusMisaligned,
		wire.StatusUnsupported, wire.StatusBadCount, wire.StatusNotExecuted, wire.StatusStale:
		return true
	}
	return false
}

// AttendantState is what an attendant leaves to that of another host.
type AttendantState struct {
	Number   uint64
	Endpoint uint16
	Origin   uint64
	Tickets  []ticket
}

// exportAttendants returns those that have something. a.mu is held.
func (a *Arrivals) exportAttendants() (all []AttendantState) {
	for number, t := range a.attends {
		if len(t.tickets) > 0 && (!t.closed || t.owed.Load() > 0) {
			all = append(all, AttendantState{number, t.pair.key.endpoint, t.pair.key.origin, t.tickets})
		}
	}
	return all
}

// restoreAttendants makes attendants that wait for the same answers. a.mu is held. Those
// whose sessions do not come are closed.
func (a *Arrivals) restoreAttendants(all []AttendantState) {
	for i := range all {
		s := &all[i]
		t := a.attendant(s.Number, pairOf{s.Endpoint, s.Origin}, wire.Addr{}, new(atomic.Bool))
		t.tickets, t.closed = s.Tickets, true
		for i := range t.tickets {
			if len(t.tickets[i].Said) == 0 {
				t.owed.Add(1)
			}
		}
		a.owed += int(t.owed.Load())
		t.pair.owed.Add(t.owed.Load())
	}
}

// State implements session.MobileAttendant.
func (t *attendant) State() uint64 { return t.head.Session }

// Restore implements session.MobileAttendant.
func (t *attendant) Restore(number uint64) (tickets int) {
	a := t.a
	a.mu.Lock()
	defer a.mu.Unlock()
	was := a.attends[number]
	if was == nil || !was.closed || was.pair != t.pair {
		return 0
	}
	delete(a.attends, t.head.Session)
	was.pair.of-- // the two are one
	t.tickets, t.head.Session = was.tickets, number
	t.owed.Store(was.owed.Load())
	a.attends[number] = t
	return len(t.tickets)
}

// Detach implements session.MobileAttendant: Export has the tickets.
func (t *attendant) Detach() {}
