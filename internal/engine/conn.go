// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// conn is one session to a remote, from this side: the state machine, and what each frame
// in flight carries. A remote has one at a time, and perhaps the one before it, whose
// operations may still become known.
type conn struct {
	r   *remote
	by  *Peer // the address that its frames go to
	ini *session.Initiator
	slot
	unit    uint32 // see nextUnit
	stage   stage
	message *flight                   // a part of it is under way, and the rest has still to be packed; or nil
	severed uint64                    // bytes that are under way of a message which the target has to drop; or 0
	frames  [session.MaxWindow]*cargo // of requests that wait for an answer, by psn
	tickets []*ticket                 // operations that wait at the target
	dirty   bool                      // on the engine's dirty list
	doubted bool                      // suspended, and its operations have not been completed yet
	until   int64                     // when a suspended session is given up, or its doubt ends
	alarmAt int64                     // when the port may next be told that the peer is silent
}

func (c *conn) place() *slot { return &c.slot }
func (c *conn) due() bool    { return c.ini.Due() || len(c.tickets) > 0 && c.ticketsDue() }

// aim makes the frames go to an address of the remote.
func (c *conn) aim(by *Peer) {
	c.by, c.path = by, by.path
	c.path.SetFlow(uint32(c.slot.id))
}

func (c *conn) emit(b []byte) int {
	e := c.r.e
	e.look() // frames that are sent carry the time
	if len(c.tickets) > 0 && !c.ini.Due() {
		return c.ini.EmitTickets(b, c.nextTicket)
	}
	c.pickUp()
	c.ini.Follow(c.follows())
	n := c.ini.Emit(e.now, b)
	if again := c.ini.Resent; again != c.traffic.FramesResent {
		e.count[FramesResent] += again - c.traffic.FramesResent
		c.traffic.FramesResent = again
	}
	return n
}

func (c *conn) clean() {
	c.dirty = false
	if state, _ := c.ini.State(); state == session.Closed {
		c.remove() // its farewell is sent
	}
}

// atTarget names a session as its target knows it: by the id that the target gave it, and
// the epoch. A target names a session so when it says that it has lost it.
type atTarget struct{ id, epoch uint32 }

func (c *conn) atTarget() atTarget {
	known := c.ini.Identity()
	return atTarget{known.Session, known.Epoch}
}

// remove takes the session out of the tables.
func (c *conn) remove() {
	e := c.r.e
	if c.slot.id != 0 {
		c.r.origin.count(-1)
		c.r.past.add(&c.traffic)
	}
	e.table.remove(c)
	if e.begun[c.atTarget()] == c {
		delete(e.begun, c.atTarget())
	}
}

// spent reports whether the session can carry no more operations.
func (c *conn) spent() bool {
	state, _ := c.ini.State()
	return state != session.Connecting && state != session.Open
}

// receive takes a frame of the target. A request or a probe can only be meant for a
// session that had the id before.
func (c *conn) receive(h *wire.Header, payload []byte) bool {
	if h.Type == wire.Request || h.Type == wire.Probe {
		return false
	}
	e := c.r.e
	e.look()
	c.traffic.received(len(e.at.packet))
	if h.Type == wire.Tickets {
		c.onTickets(h, payload)
		return true
	}
	ev := c.ini.Receive(e.now, h, payload)
	if ev.Kind == session.Responded {
		c.responded(ev.First, h, payload)
	}
	c.happened(ev)
	return true
}

// happened acts on the verdict on a frame; a response has been taken already.
func (c *conn) happened(ev session.Event) {
	switch ev.Kind {
	case session.Refused:
		c.r.e.count[Invalid]++
	case session.Met:
		c.met()
	case session.Opened:
		c.opened()
	case session.Succeeded:
		for psn := ev.First; psn != ev.Last+1; psn++ {
			c.succeeded(psn)
		}
	case session.Ended:
		c.ended()
	case session.Outlived:
		c.r.outlived(ev.Life)
	case session.Narrowed:
		c.narrowed()
	case session.Widened:
		c.widened()
	}
	if ev.Partly > 0 {
		c.partly(ev.Next, int(ev.Partly))
	}
	c.progress()
}

// opened is called when the target has accepted the session.
func (c *conn) opened() {
	c.met()
	if c.spent() {
		return
	}
	c.settled()
	c.seal()
	c.note(SessionOpened, "")
	r := c.r
	r.e.begun[c.atTarget()] = c
	r.retries, r.retryAt, r.fullSince, r.outdated, r.unanswered = 0, 0, 0, 0, unanswered{}
	if len(r.watches) > 0 {
		c.ini.Watch(r.e.now, true)
	}
	r.resumed()
}

// progress makes sure that due frames are sent, and that a suspended session settles when
// it is over.
func (c *conn) progress() {
	e := c.r.e
	if c.due() {
		e.touch(c, &c.dirty)
	}
	if state, _ := c.ini.State(); state == session.Closed && c.r.suspended == c {
		c.r.suspended = nil
		e.touch(c, &c.dirty)
	}
}

func (c *conn) tick(now int64) int64 {
	if c.ini.Tick(now).Kind == session.Ended {
		c.ended()
	}
	if state, _ := c.ini.State(); state == session.Suspended {
		return c.wait(now)
	}
	c.alarm(now)
	next := c.tickTickets(now)
	c.progress()
	return soonest(c.ini.Deadline(), next)
}

// alarm tells Config.Suspect that nothing is heard from the peer: perhaps its next hop
// has changed.
func (c *conn) alarm(now int64) {
	e := c.r.e
	if e.cfg.Suspect == nil || !c.ini.Troubled() || now < c.alarmAt {
		return
	}
	c.alarmAt = now + alarmEvery
	e.cfg.Suspect(c.by.link)
}

// alarmEvery is the least time between two alarms for one session, nanoseconds.
const alarmEvery = int64(250e6)

func (c *conn) shutdown() { c.r.end(session.ClosedHere) }

// close ends the session from this side and completes what is in flight.
func (c *conn) close(why session.Reason) {
	if state, _ := c.ini.State(); state != session.Closed {
		c.ini.Close(why)
		c.ended()
		c.progress()
	}
}

// ended completes everything in flight with what is known of it, and everything in the
// queue as not executed, unless the next session can carry it. If the target has closed
// the session, the next one carries in any case what has been posted since the last
// round: the target may have closed it long before, and the next session finds out why.
func (c *conn) ended() {
	state, why := c.ini.State()
	if c.r.conn == c {
		c.by.narrow = c.ini.Narrow()
	}
	c.silent(why)
	staged := c.spill()
	c.halve(why)
	if why != session.PeerClosed {
		c.r.unshift(staged)
		staged = nil
	}
	switch {
	case state != session.Suspended:
		c.endTickets(why)
		c.failAll(why)
	case why == session.Forgotten:
		c.doubt()
	default:
		c.suspend(why)
	}
	r := c.r
	if r.conn == c && r.claimed != r.id {
		r.unclaim()
	}
	if c.by.asked == r {
		c.by.asked = nil // no answer: the address keeps its meaning
	}
	if r.conn == c && !r.goesOn(why) {
		r.fullSince = 0
		res := Result{Outcome: NotExecuted, Reason: why}
		r.failWhere(res, func(f *flight) bool {
			return staged == nil || f.Verb != VerbFlush // which is behind what the next session carries
		})
		r.failWatches(res)
	}
	r.unshift(staged)
	if why != session.ClosedHere && why != session.Idle && why != session.Settled && why != session.Renamed {
		r.e.count[SessionsFailed]++
	}
	c.note(SessionEnded, why.String())
	r.e.touch(c, &c.dirty) // to send the farewell, and to leave the table
}

// mostOutdated is how many sessions in a row a target may refuse as outdated before
// it is taken for a liar.
const mostOutdated = 8

// goesOn reports whether a session that ended for this reason is followed by another
// one, which carries the operations that wait.
func (r *remote) goesOn(why session.Reason) bool {
	if why == session.Outdated {
		r.outdated++
		return r.outdated < mostOutdated
	}
	if r.suspended != nil && r.suspended.doubted {
		switch why {
		case session.RefusedEndpoint, session.RefusedFull, session.RefusedClosing:
			r.refusal = why
			return true // the endpoint may be about to serve
		}
	}
	if why == session.RefusedFull {
		return r.head != nil && r.crowded()
	}
	return why == session.Idle || why == session.Forgotten || why == session.Renamed
}

// failAll completes everything in flight, without stand-ins.
func (c *conn) failAll(why session.Reason) {
	c.ini.Unanswered(func(psn uint32, outcome session.FrameOutcome) {
		r := Result{Reason: why}
		switch outcome {
		case session.NeverRan:
			r.Outcome = NotExecuted
		case session.LostToCrash:
			r.Outcome = Restarted
		default:
			r.Outcome = Unknown
		}
		c.fail(psn, r)
	})
}

// fail completes the records of one frame.
func (c *conn) fail(psn uint32, r Result) {
	at := c.release(psn)
	at.expand()
	for i := range at.frags {
		at.frags[i].f.fail(r)
		at.frags[i].settle()
	}
	c.r.e.drop(at)
}
