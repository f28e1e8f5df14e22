// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// NoteKind describes what a Note tells.
type NoteKind uint8

// The kinds of notes.
const (
	SessionAccepted  NoteKind = iota // begun by the peer
	SessionForgotten                 // begun by the peer; Why
	SessionStalled                   // begun by the peer, which stopped in the middle of a message
	SessionRefused                   // that the peer asked for; Why
	SessionOpened                    // by this side
	SessionEnded                     // opened by this side, or never accepted; Why
	OpsRefused                       // of the peer, in one frame or several that ran at once; Failed
	NameNotFound                     // the first that the peer looked up in vain in the session; Failed
)

// Note tells of something that began, ended or was refused: see Config.Journal.
type Note struct {
	Kind     NoteKind
	Peer     wire.Addr      // of a session that the peer began: of the node, without the endpoint's number
	Endpoint uint16         // of this node
	Session  wire.SessionID // of this node; 0 if there is none
	Why      string
	Traffic  *Traffic          // that the session has carried; nil if that is not told
	Failed   *session.Failures // of OpsRefused and NameNotFound
}

// Why sessions that peers began end.
const (
	endedByPeer   = "closed by the peer"
	endedSilent   = "silent for too long"
	endedReplaced = "the peer began another one between the same endpoints"
	endedEvicted  = "evicted, as there was no room for others"
	endedHere     = "closed by this node"
)

// note tells the journal of an accepted session.
func (t *target) note(kind NoteKind, why string, carried *Traffic) {
	if tell := t.e.cfg.Journal; tell != nil {
		if kind == SessionForgotten {
			why = cmp.Or(why, endedHere)
		}
		tell(&Note{Kind: kind, Peer: t.from, Endpoint: t.endpoint, Session: t.slot.id, Why: why, Traffic: carried})
	}
}

// refused counts operations of the peer that failed, and questions that found nothing. Of
// those the journal is told once a session, since a ping is such a question, too.
func (t *target) refused(f *session.Failures) {
	for s, n := range f.By {
		t.e.count[opBase+Counter(s)] += uint64(n)
	}
	t.traffic.Refused += uint64(f.Count)
	t.e.count[LookupsNotFound] += uint64(f.NotFound)
	if tell := t.e.cfg.Journal; tell != nil {
		n := Note{Kind: OpsRefused, Peer: t.from, Endpoint: t.endpoint, Session: t.slot.id, Failed: f}
		if f.Count > 0 {
			tell(&n)
		}
		if f.Sought.Name() != "" && !t.sought {
			n.Kind, t.sought = NameNotFound, true
			tell(&n)
		}
	}
	*f = session.Failures{}
}

// note tells the journal of a session that this side asked for.
func (c *conn) note(kind NoteKind, why string) {
	if tell := c.r.e.cfg.Journal; tell != nil {
		s := c.describe()
		tell(&Note{Kind: kind, Peer: s.Peer, Endpoint: s.Endpoint, Session: s.ID, Why: why, Traffic: &s.Traffic})
	}
}

// helloRefused counts a session that a peer asked for in vain.
func (e *Engine) helloRefused(m *wire.HelloMsg, src *wire.Source, why wire.HelloStatus) {
	e.count[helloBase+Counter(why)]++
	if e.cfg.Journal != nil {
		e.cfg.Journal(&Note{Kind: SessionRefused, Peer: src.Addr(), Endpoint: m.Endpoint, Why: why.String()})
	}
}

// refuses reports whether a hello with such an answer ends in no session. Others are
// asked for again, or are about connections.
func refuses(s wire.HelloStatus) bool {
	switch s {
	case wire.HelloNoEndpoint, wire.HelloFull, wire.HelloShuttingDown, wire.HelloOutdated, wire.HelloKeyWanted,
		wire.HelloKeyUnwanted, wire.HelloKeyWrong, wire.HelloRejected:
		return true
	}
	return false
}
