// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// conn is one session to a peer, from this side: the state machine, and what each
// frame in flight carries. A peer has one at a time, and perhaps the one before it,
// whose outcome is still to be cleared up.
type conn struct {
	p      *Peer
	ini    *session.Initiator
	slot   slot
	path   path
	frames [session.MaxWindow][]segment // by psn
	dirty  bool                         // on the engine's dirty list
	resent uint64                       // of the session's count, already in the engine's
	until  int64                        // when a suspended session is given up for good
}

// resumeFor is how long a suspended session is kept, in nanoseconds: less than
// the target keeps its half.
const resumeFor = int64(60e9)

func (c *conn) place() *slot { return &c.slot }
func (c *conn) link() *path  { return &c.path }
func (c *conn) due() bool    { return c.ini.Due() }

func (c *conn) emit(b []byte) int {
	c.p.e.look() // what is sent is dated
	n := c.ini.Emit(c.p.e.now, b)
	if c.ini.Resent != c.resent {
		c.p.e.count[FramesResent] += c.ini.Resent - c.resent
		c.resent = c.ini.Resent
	}
	return n
}

func (c *conn) clean() {
	c.dirty = false
	if state, _ := c.ini.State(); state == session.Closed {
		c.p.e.table.remove(c) // its farewell is sent
	}
}

// over reports whether the session can carry no more operations.
func (c *conn) over() bool {
	state, _ := c.ini.State()
	return state != session.Connecting && state != session.Open
}

// receive takes a frame of the target.
func (c *conn) receive(h *wire.Header, payload []byte) bool {
	e := c.p.e
	e.look()
	ev := c.ini.Receive(e.now, h, payload)
	switch ev.Kind {
	case session.Refused:
		e.count[Invalid]++
	case session.Opened:
		c.p.resumed()
	case session.Succeeded:
		for psn := ev.First; psn != ev.Last+1; psn++ {
			c.succeeded(psn)
		}
	case session.Responded:
		c.responded(ev.First, h, payload)
	case session.Ended:
		c.ended()
	}
	c.progress()
	return true
}

// progress sees to it that frames that are due get sent, and that a session in
// limbo that is over leaves it.
func (c *conn) progress() {
	if c.ini.Due() {
		c.p.e.touch(c, &c.dirty)
	}
	if state, _ := c.ini.State(); state == session.Closed && c.p.limbo == c {
		c.p.limbo = nil
		c.p.e.touch(c, &c.dirty)
	}
}

func (c *conn) tick(now int64) int64 {
	if c.ini.Tick(now).Kind == session.Ended {
		c.ended()
	}
	state, _ := c.ini.State()
	if state == session.Suspended {
		if now >= c.until {
			c.close(session.GaveUp)
		} else if c.p.conn == nil || c.p.conn.over() {
			c.p.connect() // it takes a new session to clear up the old one
		}
		return c.until
	}
	c.progress()
	return c.ini.Deadline()
}

func (c *conn) shutdown() { c.p.end(session.ClosedHere) }

// close ends the session from this side and completes what is in flight.
func (c *conn) close(why session.Reason) {
	if state, _ := c.ini.State(); state != session.Closed {
		c.ini.Close(why)
		c.ended()
		c.progress()
	}
}

// ended completes everything in flight with what is known of it, and everything
// in the queue as not executed. The next operation begins a new session.
func (c *conn) ended() {
	state, why := c.ini.State()
	if state == session.Suspended {
		c.suspend()
	} else {
		c.abandon(why)
	}
	p := c.p
	if p.conn == c && why != session.Idle {
		p.failQueue(Result{Fate: NotExecuted, Reason: why})
	}
	if why != session.ClosedHere && why != session.Idle && why != session.Settled {
		p.e.count[SessionsFailed]++
	}
	p.e.touch(c, &c.dirty) // for the farewell, and to leave the table
}

// abandon completes what is in flight for good.
func (c *conn) abandon(why session.Reason) {
	c.ini.Unanswered(func(psn uint32, fate session.Fate) {
		r := Result{Reason: why}
		switch fate {
		case session.NeverRan:
			r.Fate = NotExecuted
		case session.LostToCrash:
			r.Fate = Restarted
		default:
			r.Fate = Unknown
		}
		c.fail(psn, r)
	})
}

// fail completes the records of one frame.
func (c *conn) fail(psn uint32, r Result) {
	segs := c.take(psn)
	for i := range segs {
		segs[i].op.fail(r)
		segs[i].settle()
	}
	c.p.e.giveSegments(segs)
}

// take removes the segments of psn from the window.
func (c *conn) take(psn uint32) []segment {
	segs := c.frames[psn%session.MaxWindow]
	c.frames[psn%session.MaxWindow] = nil
	return segs
}
