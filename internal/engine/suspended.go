// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/xdpfab/xdpfab/internal/session"
)

// A session is suspended while the outcomes of its operations in flight are unknown. The
// next session's hello asks about them. There are two ways into suspension:
//
//	suspend   the target was silent for the give-up time: what was in flight has
//	          been completed as unknown, with stand-ins that may learn more later
//	doubt     the target does not know the session: that is cleared up within a
//	          round trip or two, so what was in flight is still to be completed

// enter suspends the session. A remote has one suspended session at a time: what is
// unknown of an older one stays unknown.
func (c *conn) enter(until int64) {
	r := c.r
	if r.suspended != nil && r.suspended != c {
		r.suspended.close(session.GaveUp)
	}
	r.suspended = c
	r.e.suspended = append(slices.DeleteFunc(r.e.suspended, (*conn).resolved), c)
	c.until = until
}

// doubt waits for the target's next hello-ack, which says whether the target has
// restarted, has forgotten the session, or was not the node that sent the reset.
func (c *conn) doubt() {
	c.doubted = true
	c.r.refusal = session.Alive
	c.enter(c.r.e.now + int64(c.r.origin.cfg.GiveUp))
	if c.r.conn == c {
		c.r.retry()
	}
}

// suspend completes everything in flight as unknown, and keeps what is needed to learn
// the outcomes later. Each operation gets a stand-in in its frames, since its flight is
// recycled. why is the reason of those whose outcome is unknown.
func (c *conn) suspend(why session.Reason) {
	c.doubted = false
	c.endTickets(why)
	c.enter(c.r.e.now + int64(session.SuspendedFor))
	c.ini.DropUnsent(func(psn uint32) {
		c.fail(psn, Result{Outcome: NotExecuted, Reason: session.GaveUp})
	})
	stand := map[*flight]*flight{}
	for at := range c.expanded() {
		for i := range at.frags {
			s := &at.frags[i]
			f := s.f
			in := stand[f]
			if in == nil {
				in = standIn(f)
				stand[f] = in
			}
			in.pending++
			s.f = in
			f.fail(Result{Outcome: Unknown, Reason: why, Later: in.later})
			(&fragment{f: f}).settle()
		}
	}
	for _, g := range c.frames {
		if g != nil {
			g.settleQuiets()
		}
	}
}

// wait lets time pass for a suspended session, and returns the next deadline.
func (c *conn) wait(now int64) int64 {
	r := c.r
	if c.doubted && now >= c.until {
		c.suspend(r.undecided())
		if c.outdone() { // what waited for the end of the doubt
			r.failQueue(Result{Outcome: NotExecuted, Reason: r.refusal})
		}
	}
	switch {
	case now >= c.until:
		c.close(session.GaveUp)
	case r.conn != nil && !r.conn.spent():
	case !c.doubted && c.outdone():
		c.close(session.PeerRestarted)
	default:
		r.retry()
		return min(c.until, max(r.retryAt, now+1))
	}
	return c.until
}

// outdone reports whether another process than that of the suspended session has refused
// the next one. Its answer has the nonce of a hello that was made after the former
// process had accepted the session, so that is over. Nothing proves it where a key would
// have to, and what outlives processes may go on with the session.
func (c *conn) outdone() bool {
	r := c.r
	if r.conn == nil || r.conn == c || r.origin.key != nil || c.ini.Lasting() != 0 {
		return false
	}
	switch _, why := r.conn.ini.State(); why {
	case session.RefusedEndpoint, session.RefusedFull, session.RefusedClosing:
		return c.ini.Life() != 0 && r.conn.ini.Life() != c.ini.Life()
	}
	return false
}

// undecided returns why no session has followed the one in doubt within the give-up time:
// the target refuses it, or has fallen silent since, which is published.
func (r *remote) undecided() session.Reason {
	if n := r.conn; r.refusal == session.Alive || !n.spent() && n.ini.Troubled() {
		n.silent(session.GaveUp)
		return session.GaveUp
	}
	return r.refusal
}

// resolved reports whether a session that was suspended has settled.
func (c *conn) resolved() bool { return c.r.suspended != c }

// evictSuspended gives up the session that was suspended for longest, so that its
// buffers and its place in the table serve peers that can be reached. It returns false
// when no session is suspended.
func (e *Engine) evictSuspended() bool {
	return e.evictSuspendedIf(func(*conn) bool { return true })
}

// evictSuspendedOf is evictSuspended among the sessions that carry the operations of a
// host ring.
func (e *Engine) evictSuspendedOf(x *ringShare) bool {
	return e.evictSuspendedIf(func(c *conn) bool { return c.r.origin.payer == x })
}

func (e *Engine) evictSuspendedIf(fits func(*conn) bool) bool {
	e.suspended = slices.DeleteFunc(e.suspended, (*conn).resolved)
	i := slices.IndexFunc(e.suspended, fits)
	if i < 0 {
		return false
	}
	c := e.suspended[i]
	e.suspended = slices.Delete(e.suspended, i, i+1)
	c.close(session.GaveUp)
	c.remove()
	return true
}

// resumed is called when a new session is open: its hello-ack says how far the target got
// in the suspended session. By then a restart has been noticed.
func (r *remote) resumed() {
	c := r.suspended
	if c == nil {
		return
	}
	known, lost := r.conn.ini.Resumed()
	if was := c.ini.Identity(); known.Session != was.Session || known.Epoch != was.Epoch {
		why := session.Forgotten
		if c.ini.Life() != r.conn.ini.Life() { // it ended with its process
			why = session.PeerRestarted
		}
		c.close(why)
		return
	}
	_, why := c.ini.State()
	c.endTickets(why)
	c.ini.Settle(r.e.now, c.until, session.Ran{PSN: known.PSN, Early: known.Early}, func(psn uint32) {
		c.fail(psn, Result{Outcome: NotExecuted, Reason: why})
	})
	if state, _ := c.ini.State(); lost && state != session.Closed {
		c.close(session.Forgotten) // the rest ran, and its results are lost
		return
	}
	c.progress()
}
