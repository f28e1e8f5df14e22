// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"encoding/binary"
	"math"
	"slices"
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// An operation that waits at the target (wire.VerbWait) leaves its frame, once that is
// answered by a ticket, and is in flight until the target tells of its end. Frames of
// tickets may get lost, so this side asks, less and less often: how the operation is; to
// end it, when its caller has let it go; and to forget it, when its end is known, until
// the target says that it has.

// ticket is such an operation. It stays until the target has forgotten it.
type ticket struct {
	psn    uint32
	index  uint8
	f      *flight         // nil once the end is known, or the flight was recycled
	kind   wire.TicketKind // what is asked
	due    bool            // it is to be sent
	tries  int             // how often it was
	vain   int             // how often since the target was last heard of it
	at     int64           // when it is due next
	quiets []*quiet        // flushes that wait for it
}

const (
	// longestAsk is the longest time between two questions, in nanoseconds.
	longestAsk = int64(time.Second)
	// takenTries is how often the target is told to forget an operation: one that never
	// answers that forgets it with the session.
	takenTries = 12
	// askTries is how often a target that lives is asked in vain: after a takeover it may
	// be a process of an earlier release, which knows no tickets.
	askTries = 30
)

// SetLimit says for how many microseconds an operation waits at most; more, or a limit of
// 0, stands for none.
func (s *Submission) SetLimit(us uint64) {
	if us == 0 || us > uint64(wire.NoLimit) {
		us = uint64(wire.NoLimit)
	}
	binary.LittleEndian.PutUint32(s.Inline[InlineLen-limitLen:], uint32(us))
}

// limitLen is the length of the limit, which lies in the last bytes of Inline.
const limitLen = 4

func (x *Entry) limit() uint32 { return binary.LittleEndian.Uint32(x.Inline[InlineLen-limitLen:]) }

// misshapenWait reports whether a waiting compare is one that no record can have.
func (x *Entry) misshapenWait() bool {
	size := wire.ElemSize(x.Datatype)
	return x.Count != 1 || x.Flags&^FlagFence != 0 || size == 0 || size > wire.MaxWait || x.Opcode == wire.OpRead
}

// packWait appends the record of an operation that waits.
func (c *conn) packWait(w *wire.RecordWriter, f *flight) bool {
	size := wire.ElemSize(f.Datatype)
	return w.Append(&wire.Record{Verb: f.Verb, Op: f.Opcode, Datatype: f.Datatype, Key: f.Key, Offset: f.Offset,
		Incarnation: f.Incarnation, Limit: f.limit(), Operand: f.Inline[:size], Compare: f.Inline[size : 2*size]})
}

// waited takes the answer to the record of an operation that waits.
func (c *conn) waited(s *fragment, r *wire.ResponseReader, g *cargo) {
	f := s.f
	status, value, _ := r.Next(wire.TicketLen)
	if status != wire.StatusOK {
		f.fail(Result{Outcome: NotExecuted, Status: status})
		s.settle()
		return
	}
	t := wire.TicketAt(value)
	if t.Kind != wire.TicketParked {
		f.tell(t)
		s.settle()
		return
	}
	if state, _ := c.ini.State(); state != session.Open || c.ticketOf(t) != nil || len(c.tickets) >= mostTickets {
		f.fail(Result{Outcome: Unknown, Reason: session.Forgotten})
		s.settle()
		return
	}
	now := c.r.e.now
	x := &ticket{psn: t.PSN, index: t.Index, f: f, kind: wire.TicketAsk, at: now + c.askAfter(0)}
	for _, q := range g.quiets {
		q.left++
		x.quiets = append(x.quiets, q)
	}
	c.tickets = append(c.tickets, x)
	c.ini.Watch(now, true)
	if f.leaving {
		c.asks(x, wire.TicketCancel)
	}
}

// mostTickets is more than a target has of a session.
const mostTickets = 1024

// tell ends an operation as its target has told.
func (f *flight) tell(t wire.Ticket) {
	r := Result{Outcome: NotExecuted}
	switch t.Kind {
	case wire.TicketRan:
		var value [wire.MaxWait]byte
		binary.LittleEndian.PutUint64(value[:], t.Value)
		f.ran = true
		f.store(0, value[:wire.ElemSize(f.Datatype)])
		return
	case wire.TicketLate, wire.TicketCancelled:
		r.Reason = session.Cancelled
	case wire.TicketClosed:
		r.Status = wire.StatusNoKey
	case wire.TicketFull:
		r.Reason = session.Crowded
	default: // it was handed to another process, which knows nothing of what waits
		r.Outcome, r.Reason = Unknown, session.Forgotten
	}
	f.fail(r)
}

// askAfter is how long the target is given to tell of an operation before it is asked
// again.
func (c *conn) askAfter(tries int) int64 {
	return min(int64(c.r.origin.cfg.RTOMin)<<min(tries, 10), longestAsk)
}

// asks has the target asked at once.
func (c *conn) asks(x *ticket, kind wire.TicketKind) {
	x.kind, x.due, x.tries, x.vain = kind, true, 0, 0
	x.at = c.r.e.now + c.askAfter(0)
	c.r.e.touch(c, &c.dirty)
}

// The target is told that the end of an operation is known when that is so of mostUntold,
// or takenAfter nanoseconds later, or at once if fullSoon operations wait: it has room
// for no more than 64 of a session, and counts those whose ends may not be known. So the
// frame leaves behind the requests of callers that go on.
const (
	mostUntold = 4
	takenAfter = int64(time.Millisecond)
	fullSoon   = 32
)

// taken has the target told that the end of an operation is known.
func (c *conn) taken(x *ticket) {
	c.asks(x, wire.TicketTaken)
	now := c.r.e.now
	x.due, x.at = false, now+takenAfter
	untold := func(y *ticket) bool { return y.kind == wire.TicketTaken && y.tries == 0 }
	n := 0
	for _, y := range c.tickets {
		if untold(y) {
			n++
		}
	}
	if n < mostUntold && len(c.tickets) < fullSoon {
		return
	}
	for _, y := range c.tickets {
		if untold(y) {
			y.due, y.tries, y.at = true, 1, now+c.askAfter(1)
		}
	}
}

func (c *conn) ticketOf(t wire.Ticket) *ticket {
	for _, x := range c.tickets {
		if x.psn == t.PSN && x.index == t.Index {
			return x
		}
	}
	return nil
}

// onTickets takes what the target tells of operations that wait.
func (c *conn) onTickets(h *wire.Header, payload []byte) {
	if !c.ini.Tells(h) {
		c.r.e.count[Invalid]++
		return
	}
	for ; len(payload) >= wire.TicketLen; payload = payload[wire.TicketLen:] {
		t := wire.TicketAt(payload)
		x := c.ticketOf(t)
		switch {
		case x == nil || !t.Kind.Told():
			// of an operation that the answer to its request has still to name, or late
		case t.Kind == wire.TicketParked:
			x.vain = 0
		case t.Kind == wire.TicketGone:
			c.settleTicket(x, t)
			c.dropTicket(x)
		default:
			c.settleTicket(x, t)
			c.taken(x)
		}
	}
}

// settleTicket ends the operation of a ticket, if that is still to come.
func (c *conn) settleTicket(x *ticket, t wire.Ticket) {
	f := x.f
	if f == nil {
		return
	}
	x.f = nil
	f.tell(t)
	(&fragment{f: f}).settle()
	x.settleQuiets()
	c.r.list() // what has a fence may go now
}

func (x *ticket) settleQuiets() {
	quiets := x.quiets
	x.quiets = nil
	for _, q := range quiets {
		q.less()
	}
}

func (c *conn) dropTicket(x *ticket) {
	c.tickets = slices.DeleteFunc(c.tickets, func(y *ticket) bool { return x == y })
	if len(c.tickets) == 0 && len(c.r.watches) == 0 {
		c.ini.Watch(c.r.e.now, false)
	}
}

// holds reports whether an operation of the session waits at the target.
func (c *conn) holds() bool {
	return slices.ContainsFunc(c.tickets, func(x *ticket) bool { return x.f != nil })
}

// tickTickets makes the questions due whose time has come, and returns the next time, or
// math.MaxInt64.
func (c *conn) tickTickets(now int64) (next int64) {
	next = math.MaxInt64
	for i := len(c.tickets) - 1; i >= 0; i-- {
		x := c.tickets[i]
		if now >= x.at {
			x.due, x.tries, x.vain = true, x.tries+1, x.vain+1
			x.at = now + c.askAfter(x.tries)
		}
		if x.kind == wire.TicketTaken && x.tries > takenTries || x.vain > askTries && !c.ini.Troubled() {
			c.settleTicket(x, wire.Ticket{Kind: wire.TicketGone})
			c.dropTicket(x)
			continue
		}
		next = min(next, x.at)
	}
	return next
}

// nextTicket returns the next question that is due.
func (c *conn) nextTicket() (t wire.Ticket, ok bool) {
	for _, x := range c.tickets {
		if x.due {
			x.due = false
			return wire.Ticket{PSN: x.psn, Index: x.index, Kind: x.kind}, true
		}
	}
	return t, false
}

func (c *conn) ticketsDue() bool {
	return slices.ContainsFunc(c.tickets, func(x *ticket) bool { return x.due })
}

// endTickets completes the operations that wait at a target whose session has ended. They
// may have run; from the end of the session on they do not. A session in doubt keeps them
// until it is known whether the target has restarted.
func (c *conn) endTickets(why session.Reason) {
	all := c.tickets
	c.tickets = nil
	r := Result{Outcome: Unknown, Reason: why}
	if why == session.PeerRestarted {
		r.Outcome = Restarted
	}
	for _, x := range all {
		if f := x.f; f != nil {
			f.fail(r)
			(&fragment{f: f}).settle()
		}
		x.settleQuiets()
	}
}

// Recall asks the target to end the operation of the peer that was posted with context,
// if it waits there: it completes as not executed, unless it has run, as soon as the
// target has answered. One that has not left completes at once. Recall returns false when
// there is no such operation among those collected. Engine's thread only.
func (p *Peer) Recall(context any) bool {
	r := p.r
	match := func(f *flight) bool { return f.Context == context && f.Verb == wire.VerbWait }
	if g := p.origin.e.viaHost; g != nil {
		return g.recall(match)
	}
	if f := r.withdraw(match); f != nil {
		f.fail(Result{Outcome: NotExecuted, Reason: session.Cancelled})
		f.finish()
		return true
	}
	for _, c := range []*conn{r.suspended, r.conn} {
		if c != nil && (c.recallTickets(match) || c.recallFrames(match)) {
			return true
		}
	}
	return false
}

// recallTickets recalls the operations that wait at the target for which match is true,
// and reports whether there are any.
func (c *conn) recallTickets(match func(f *flight) bool) (any bool) {
	for _, x := range c.tickets {
		if x.f != nil && match(x.f) {
			c.asks(x, wire.TicketCancel)
			any = true
		}
	}
	return any
}

// recallFrames is recallTickets for those on their way, which end when the target has
// answered that they wait. They are no followers, and in frames of mixed results.
func (c *conn) recallFrames(match func(f *flight) bool) (any bool) {
	for _, g := range c.frames {
		for i := 0; g != nil && g.each == mixed && i < len(g.frags); i++ {
			if f := g.frags[i].f; f.Verb == wire.VerbWait && match(f) {
				f.leaving, any = true, true
			}
		}
	}
	return any
}

// letTicketGo takes the operation for which match is true from its ticket, and has the
// target end it. Its outcome is unknown. It returns nil if none waits.
func (c *conn) letTicketGo(match func(f *flight) bool) *flight {
	for _, x := range c.tickets {
		if f := x.f; f != nil && match(f) {
			x.f = nil
			f.pending--
			f.fail(Result{Outcome: Unknown, Reason: session.Cancelled})
			x.settleQuiets()
			c.asks(x, wire.TicketCancel)
			return f
		}
	}
	return nil
}
