// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/wire"
	"github.com/xdpfab/xdpfab/mr"
)

// journal logs what the engines tell of sessions and refusals, at level debug. Engines
// never wait for it: what comes faster than it is logged is counted and left out.
type journal struct {
	n       *Node
	entries chan entry
	lost    atomic.Uint64
	once    sync.Once     // closes stop
	stop    chan struct{} // no engine is stepped any more
	end     sync.WaitGroup
}

// entry is the journal's copy of an engine.Note.
type entry struct {
	kind     engine.NoteKind
	peer     wire.Addr
	endpoint uint16
	session  wire.SessionID
	why      string
	traffic  engine.Traffic
	count    uint32
	failed   wire.RefusedOp
}

// journalRoom is how many entries may wait to be logged.
const journalRoom = 256

// newJournal returns the journal of a node, or nil if its log takes no such lines.
func newJournal(n *Node) *journal {
	if n.Config.Log == nil || !n.Config.Log.Enabled(context.Background(), slog.LevelDebug) {
		return nil
	}
	j := &journal{n: n, entries: make(chan entry, journalRoom), stop: make(chan struct{})}
	j.end.Go(j.run)
	return j
}

// note is what engines call; nil if there is no journal.
func (j *journal) note() func(*engine.Note) {
	if j == nil {
		return nil
	}
	return func(x *engine.Note) {
		e := entry{kind: x.Kind, peer: x.Peer, endpoint: x.Endpoint, session: x.Session, why: x.Why}
		if x.Traffic != nil {
			e.traffic = *x.Traffic
		}
		if x.Kind == engine.NameNotFound {
			e.failed = x.Failed.Sought
		} else if x.Failed != nil {
			e.count, e.failed = x.Failed.Count, x.Failed.First
		}
		select {
		case j.entries <- e:
		default:
			j.lost.Add(1)
		}
	}
}

// run logs entries until close, and then what waits.
func (j *journal) run() {
	for {
		select {
		case e := <-j.entries:
			j.log(&e)
			continue
		case <-j.stop:
		}
		for {
			select {
			case e := <-j.entries:
				j.log(&e)
			default:
				return
			}
		}
	}
}

// close logs what waits, once no engine is stepped.
func (j *journal) close() {
	if j != nil {
		j.once.Do(func() { close(j.stop) })
		j.end.Wait()
	}
}

var journalTexts = [...]string{
	engine.SessionAccepted:  "session accepted",
	engine.SessionForgotten: "session of a peer ended",
	engine.SessionStalled:   "message of a peer dropped, as it stopped in the middle",
	engine.SessionRefused:   "session refused",
	engine.SessionOpened:    "session opened",
	engine.SessionEnded:     "session ended",
	engine.OpsRefused:       "operations refused",
	engine.NameNotFound:     "no region has the name that a peer looked up",
}

func (j *journal) log(e *entry) {
	attrs := []slog.Attr{slog.String("peer", e.peer.String()), slog.Int("endpoint", int(e.endpoint))}
	if e.session != 0 {
		attrs = append(attrs, slog.String("session", fmt.Sprintf("0x%08x", uint32(e.session))))
	}
	if e.why != "" {
		attrs = append(attrs, slog.String("cause", e.why))
	}
	switch e.kind {
	case engine.SessionForgotten, engine.SessionEnded:
		attrs = append(attrs, slog.Uint64("ops", e.traffic.Ops), slog.Uint64("refused", e.traffic.Refused),
			slog.Uint64("resent", e.traffic.FramesResent+e.traffic.AnswersResent))
	case engine.OpsRefused:
		attrs = append(attrs, j.refused(e)...)
	case engine.NameNotFound:
		attrs = append(attrs, slog.String("name", e.failed.Name()))
	}
	if lost := j.lost.Swap(0); lost > 0 {
		attrs = append(attrs, slog.Uint64("lines_lost", lost))
	}
	j.n.Log(slog.LevelDebug, journalTexts[e.kind], attrs...)
}

// refused describes operations that were refused, by the first of them.
func (j *journal) refused(e *entry) []slog.Attr {
	op := &e.failed
	attrs := []slog.Attr{slog.Uint64("count", uint64(e.count)), slog.String("cause", op.Status.String())}
	switch {
	case op.Verb == 0:
		return attrs
	case !op.Verb.Array():
		return append(attrs, slog.String("verb", op.Verb.String()))
	}
	return append(attrs, slog.String("verb", op.Verb.String()), slog.Any("region", keyed{j.n.Table, op.Key}),
		slog.Uint64("offset", op.Offset), slog.Uint64("bytes", op.Bytes))
}

// keyed is a region by its key. The name is looked up if the line is written.
type keyed struct {
	table *mr.Table
	key   uint64
}

// LogValue implements slog.LogValuer.
func (k keyed) LogValue() slog.Value {
	for _, r := range k.table.All() {
		if r.Key() == k.key && r.Name() != "" {
			return slog.StringValue(r.Name())
		}
	}
	return slog.StringValue(fmt.Sprintf("0x%016x", k.key))
}
