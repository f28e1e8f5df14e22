// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"time"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Traffic is what sessions with one peer have carried. Each session counts for itself, on
// the engine's thread; when it ends, the sums go to the remote or the pair, which have
// sessions one after the other.
type Traffic struct {
	Sessions        uint64
	Ops             uint64 // operation records: sent, each counted once, or executed
	Frames          uint64 // request frames of these
	FramesResent    uint64 // request frames that the initiator sent again
	AnswersResent   uint64 // answers that the target gave again: the first was lost or late
	PacketsSent     uint64
	PacketsReceived uint64
	BytesSent       uint64 // of packets, with their headers
	BytesReceived   uint64
	Refused         uint64 // operations that the target refused
}

func (t *Traffic) sent(bytes int) {
	t.PacketsSent++
	t.BytesSent += uint64(bytes)
}

func (t *Traffic) received(bytes int) {
	t.PacketsReceived++
	t.BytesReceived += uint64(bytes)
}

func (t *Traffic) add(x *Traffic) {
	t.Sessions += x.Sessions
	t.Ops += x.Ops
	t.Frames += x.Frames
	t.FramesResent += x.FramesResent
	t.AnswersResent += x.AnswersResent
	t.PacketsSent += x.PacketsSent
	t.PacketsReceived += x.PacketsReceived
	t.BytesSent += x.BytesSent
	t.BytesReceived += x.BytesReceived
	t.Refused += x.Refused
}

// SessionInfo describes a session at one moment. The traffic of a present session
// includes that of the ended sessions before it between the same endpoints.
type SessionInfo struct {
	ID       wire.SessionID // by which the peer names it
	Accepted bool           // the peer began it; otherwise this node did
	Origin   uint64         // identifies the endpoint that began it
	Peer     wire.Addr      // of an accepted session: of the node, without the endpoint's number
	Endpoint uint16         // of this node
	State    string
	Resident bool          // the XDP program executes it
	InFlight int           // request frames without an answer, or answers not acknowledged
	RTT      time.Duration // smoothed; 0: not measured
	Silence  time.Duration // since the peer last showed that it lives
	Traffic
}

// Sessions appends descriptions of the sessions at so many places of the table, from one
// on. It returns the next place to ask for, or 0 behind the last one: a caller that walks
// in steps does not hold packets up, and meets every session once that stays.
// Engine's thread only.
func (e *Engine) Sessions(list []SessionInfo, from, places int) (all []SessionInfo, next int) {
	e.look()
	end := min(from+places, len(e.table.byIndex))
	for _, x := range e.table.byIndex[min(from, end):end] {
		switch s := x.(type) { // not an Inquiry, which is no session
		case *conn:
			list = append(list, s.describe())
		case *target:
			list = append(list, s.describe())
		}
	}
	if end == len(e.table.byIndex) {
		end = 0
	}
	return list, end
}

func (c *conn) describe() SessionInfo {
	r, l := c.r, &c.by.link
	s := SessionInfo{
		ID: c.slot.id, Origin: r.origin.id, Endpoint: r.origin.endpoint, Traffic: c.traffic,
		Peer:     wire.Addr{MAC: l.Remote, Endpoint: r.id.endpoint, Lane: c.by.lane},
		InFlight: c.ini.InFlight(), RTT: c.ini.RTT(), Silence: time.Duration(r.e.now - c.ini.HeardAt()),
	}
	if l.Kind != wire.Ethernet {
		s.Peer.MAC, s.Peer.IP = wire.MAC{}, l.RemoteIP
	}
	state, _ := c.ini.State()
	if s.State = state.String(); c.doubted && state == session.Suspended {
		s.State = "in doubt"
	}
	if r.conn == c {
		s.Traffic.add(&r.past)
	}
	return s
}

// Apart is an executor that also runs frames which the engine never sees.
type Apart interface {
	// Unseen returns how many frames and records those were. resident is false as long
	// as there can be no others.
	Unseen() (frames, ops uint64, resident bool)
}

func (t *target) describe() SessionInfo {
	s := SessionInfo{
		ID: t.slot.id, Accepted: true, Origin: t.pair.key.origin, Peer: t.from, Endpoint: t.endpoint,
		State: t.phase(), InFlight: int(t.s.Ran().PSN - t.s.Acked()),
		Silence: time.Duration(t.e.lived - t.s.HeardAt()),
	}
	s.Traffic, s.Resident = t.carried()
	if t.pair.current == t {
		s.Traffic.add(&t.pair.past)
	}
	return s
}

func (t *target) phase() string {
	switch {
	case t.dying, t.ended:
		return "closing"
	case t.pair.current != t:
		return "replaced"
	case t.waits:
		return "waiting"
	}
	return session.Open.String()
}

// carried returns the session's traffic, with what the engine has not seen.
func (t *target) carried() (all Traffic, resident bool) {
	all = t.traffic
	if x, is := t.s.(Apart); is {
		var frames, ops uint64
		frames, ops, resident = x.Unseen()
		all.Frames, all.Ops = all.Frames+frames, all.Ops+ops
	}
	return all, resident
}
