// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Silence is what is known of a target when it has been given up. It is made when a
// session ends, and costs operations nothing.
type Silence struct {
	Answered bool          // the target has answered before
	For      time.Duration // without an answer, since the first question that got none
	Packets  uint64        // with questions, sent meanwhile
	Long     bool          // a frame without an answer, or its answer, is a [LongFrame]
	Link     wire.Link     // the way that the last of them went
}

// LongFrame is the length in bytes from which on a frame may be lost for its length: a
// shorter one passes every path (RFC 791, section 3.1).
const LongFrame = 512

// Silence returns what was known of the target of a peer when it was last given up; nil
// if it never was, or the peer is closed. Any goroutine may call it.
func (o *Origin) Silence(id PeerID) *Silence {
	if p := o.roster.find(id); p != nil {
		return p.silence.Load()
	}
	return nil
}

// unanswered counts the silence of a target over the sessions that it has not answered.
type unanswered struct {
	since   int64 // 0: it is not silent
	packets uint64
}

// silent publishes what is known of the silent target of a session that has ended.
func (c *conn) silent(why session.Reason) {
	r := c.r
	if why != session.PeerSilent && why != session.GaveUp || r.suspended == c { // it was silent long ago
		return
	}
	r.unanswered = c.unanswered()
	known := c.silence(r.unanswered)
	c.by.silence.Store(known)
	for _, p := range r.peers {
		p.silence.Store(known)
	}
}

// Troubled returns what is known of a target that has not answered for longer than the
// network should take, and has not been given up yet; otherwise nil. Engine's thread
// only.
func (p *Peer) Troubled() *Silence {
	c := p.r.conn
	if c == nil || c.spent() || !c.ini.Troubled() {
		return nil
	}
	return c.silence(c.unanswered())
}

// unanswered adds the silence in this session to that before it.
func (c *conn) unanswered() unanswered {
	q := c.r.unanswered
	if q.since == 0 {
		q.since = c.ini.HeardAt()
	}
	if c.ini.Identity().Session == 0 { // it was never open
		q.packets += c.traffic.PacketsSent
	} else {
		q.packets += c.ini.Unheeded()
	}
	return q
}

func (c *conn) silence(q unanswered) *Silence {
	return &Silence{Answered: c.r.process != 0, For: time.Duration(c.r.e.now - q.since), Packets: q.packets,
		Link: c.by.link, Long: c.long()}
}

// long reports whether a frame without an answer, or its answer, is long.
func (c *conn) long() bool {
	for _, g := range c.frames {
		if g == nil {
			continue
		}
		answer := 0
		for i := range g.frags {
			s := &g.frags[i]
			answer += int(s.records) * s.resultLen()
		}
		if answer >= LongFrame {
			return true
		}
	}
	return c.ini.Longest() >= LongFrame
}
