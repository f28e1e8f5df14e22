// SPDX-License-Identifier: Apache-2.0

package executor

import (
	"math"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/waiting"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The most operations that wait in an engine, in the sessions of a party, and in a
// session. Those that have ended count until the initiator knows their ends.
const (
	mostWaiting      = 4096
	mostOfParty      = mostWaiting / 8
	mostWaitingOfOne = 64
)

// lookEvery is the time, in nanoseconds, between two looks at words that wait and that
// another program may have changed: its own changes are seen that late.
const lookEvery = int64(time.Millisecond)

// silence is the time, in nanoseconds, after which an initiator that is not heard may be
// dead: it asks at least once a second as long as something of it waits.
const silence = int64(3 * time.Second)

// parked is an operation of a session that waits, or has waited. The initiator names it
// by the request and its number in there.
type parked struct {
	psn      uint32
	index    uint8
	deadline int64 // 0 for none
	asked    bool  // the initiator wants to be told how it is
	told     bool  // of its end
	note     *waiting.Note
}

func (p *parked) ended() bool { return p.note.State() != waiting.Parked }

func (p *parked) due() bool { return p.asked || !p.told && p.ended() }

// waits is what a session has of operations that wait.
type waits struct {
	all  []parked
	gone []wire.Ticket // asked for, and not here
	look int64         // when to look at the words, if the memory is another program's
}

// MayWait implements waiting.Session.
func (s *Session) MayWait() bool {
	n := 0
	if s.waits != nil {
		n = len(s.waits.all)
	}
	return n < mostWaitingOfOne && s.x.parties[s.party].waiting < mostOfParty && *s.x.waiting < mostWaiting
}

// Park implements waiting.Session.
func (s *Session) Park(n *waiting.Note, index uint8, limit uint32) (psn uint32) {
	if s.waits == nil {
		s.waits = &waits{}
	}
	p := parked{psn: s.PSN(), index: index, note: n}
	if limit != wire.NoLimit {
		p.deadline = s.now + int64(limit)*int64(time.Microsecond)
	}
	if s.Waiting() == 0 {
		s.waits.look = s.now + lookEvery
	}
	s.waits.all = append(s.waits.all, p)
	s.countWaits(1)
	return p.psn
}

// Wake implements waiting.Owner.
func (s *Session) Wake() { s.wake() }

// Soon implements waiting.Owner.
func (s *Session) Soon(f func()) { s.soon(f) }

// Silent implements waiting.Owner.
func (s *Session) Silent() bool { return s.silent.Load() }

// heard is called when a frame of a silent initiator has come. If it brought something
// new, what waits takes part again.
func (s *Session) heard() {
	if s.HeardAt() != s.now {
		return
	}
	s.silent.Store(false)
	if s.waits != nil {
		for i := range s.waits.all {
			s.waits.all[i].note.Look()
		}
	}
}

func (s *Session) countWaits(n int) {
	s.x.parties[s.party].waiting += n
	*s.x.waiting += n
}

// serves says whose operations the frame at hand has, if any may wait: attended memory
// takes none that do.
func (s *Session) serves() {
	if s.attendant == nil || !s.attendant.Attends() {
		s.x.memory.Serve(s)
	} else {
		s.x.memory.Serve(nil)
	}
}

// onTickets answers what the initiator asks of operations that wait.
func (s *Session) onTickets(h *wire.Header, payload []byte) session.Verdict {
	if s.features&wire.FeatureWaits == 0 {
		return session.Invalid
	}
	if !s.HearTickets(s.now, h) {
		return session.Drop
	}
	if s.silent.Load() {
		s.heard()
	}
	for ; len(payload) >= wire.TicketLen; payload = payload[wire.TicketLen:] {
		t := wire.TicketAt(payload)
		if !t.Kind.Asks() {
			return session.Invalid
		}
		s.asked(t)
	}
	return session.Drop
}

func (s *Session) asked(t wire.Ticket) {
	w := s.waits
	if w == nil {
		w = &waits{}
		s.waits = w
	}
	i := slices.IndexFunc(w.all, func(p parked) bool { return p.psn == t.PSN && p.index == t.Index })
	if i >= 0 && t.Kind == wire.TicketTaken && w.all[i].ended() {
		w.all = slices.Delete(w.all, i, i+1)
		s.countWaits(-1)
		i = -1
	}
	switch {
	case i < 0:
		if len(w.gone) < mostWaitingOfOne { // the initiator asks again
			w.gone = append(w.gone, wire.Ticket{PSN: t.PSN, Index: t.Index, Kind: wire.TicketGone})
		}
		return
	case t.Kind == wire.TicketCancel:
		w.all[i].note.End(waiting.Cancelled)
	}
	w.all[i].asked = true
}

func (w *waits) due() bool {
	return len(w.gone) > 0 || slices.ContainsFunc(w.all, func(p parked) bool { return p.due() })
}

// Due reports whether Emit has something to write.
func (s *Session) Due() bool { return s.Target.Due() || s.waits != nil && s.waits.due() }

// Emit writes the next frame that is due, as that of session.Target does. News of what
// waited leaves first, since somebody may hold a lock from now on. But the answer to a
// request leaves before the news of an operation in it.
func (s *Session) Emit(b []byte) int {
	if s.waits != nil && s.waits.due() {
		if n := s.EmitTickets(b, s.tell); n > 0 {
			return n
		}
	}
	return s.Target.Emit(b)
}

// tell returns the next ticket of which the initiator has to be told.
func (s *Session) tell() (t wire.Ticket, ok bool) {
	w := s.waits
	if n := len(w.gone); n > 0 {
		t, w.gone = w.gone[n-1], w.gone[:n-1]
		return t, true
	}
	for i := range w.all {
		if p := &w.all[i]; p.due() && s.Answered(p.psn) {
			t = p.ticket()
			p.asked, p.told = false, t.Kind != wire.TicketParked
			return t, true
		}
	}
	return t, false
}

// ticket says how the operation is.
func (p *parked) ticket() wire.Ticket {
	t := wire.Ticket{PSN: p.psn, Index: p.index, Kind: kinds[p.note.State()]}
	if t.Kind == wire.TicketRan {
		t.Value = p.note.Value()
	}
	return t
}

// kinds are what is told of the states of notes.
var kinds = [...]wire.TicketKind{waiting.Parked: wire.TicketParked, waiting.Ran: wire.TicketRan,
	waiting.Cancelled: wire.TicketCancelled, waiting.Late: wire.TicketLate, waiting.Closed: wire.TicketClosed}

// Limit implements engine.Timed.
func (s *Session) Limit() (next int64) {
	next = math.MaxInt64
	if s.waits != nil {
		for i := range s.waits.all {
			p := &s.waits.all[i]
			if p.ended() {
				continue
			}
			if p.deadline != 0 {
				next = min(next, p.deadline)
			}
			if !s.silent.Load() {
				next = min(next, s.HeardAt()+silence)
			}
			if s.x.foreign {
				next = min(next, s.waits.look)
			}
		}
	}
	return next
}

// Expire implements engine.Timed.
func (s *Session) Expire(now int64) (next int64) {
	if s.waits == nil {
		return math.MaxInt64
	}
	if s.x.foreign && now >= s.waits.look {
		s.lookAgain()
		s.waits.look = now + lookEvery
	}
	if now-s.HeardAt() >= silence && !s.silent.Swap(true) {
		for i := range s.waits.all {
			s.waits.all[i].note.Look() // those behind need not wait for it
		}
	}
	for i := range s.waits.all {
		if p := &s.waits.all[i]; p.deadline != 0 && p.deadline <= now {
			p.note.End(waiting.Late)
		}
	}
	return s.Limit()
}

// lookAgain looks at the words, once for each region.
func (s *Session) lookAgain() {
	var last *waiting.Queues
	for i := range s.waits.all {
		if p := &s.waits.all[i]; !p.ended() && p.note.At() != last {
			last = p.note.At()
			p.note.Look()
		}
	}
}

// endWaits ends the operations that wait: none of them runs from here on.
func (s *Session) endWaits() {
	if s.waits != nil {
		for i := range s.waits.all {
			s.waits.all[i].note.End(waiting.Closed)
		}
	}
}

// dropWaits forgets them.
func (s *Session) dropWaits() {
	if s.waits != nil {
		s.endWaits()
		s.countWaits(-len(s.waits.all))
		s.waits = nil
	}
}

// exportWaits ends what waits, and returns what has become of all that the initiator may
// not know of.
func (s *Session) exportWaits() (ends []wire.Ticket) {
	if s.Waiting() == 0 {
		return nil
	}
	s.endWaits()
	s.Wake() // the takeover may fail
	for i := range s.waits.all {
		ends = append(ends, s.waits.all[i].ticket())
	}
	return ends
}

// importWaits continues with what exportWaits has returned in another process.
func (s *Session) importWaits(ends []wire.Ticket) {
	for _, t := range ends[:min(len(ends), mostWaitingOfOne)] {
		state := slices.Index(kinds[:], t.Kind)
		if state <= int(waiting.Parked) {
			continue
		}
		if s.waits == nil {
			s.waits = &waits{}
		}
		s.waits.all = append(s.waits.all, parked{psn: t.PSN, index: t.Index,
			note: waiting.Ended(waiting.State(state), t.Value)})
		s.countWaits(1)
	}
}

// Waiting returns how many operations wait, or have waited and the initiator may not know
// their ends.
func (s *Session) Waiting() int {
	if s.waits == nil {
		return 0
	}
	return len(s.waits.all)
}
