// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"slices"

	"github.com/xdpfab/xdpfab/internal/session"
)

// Later is where the outcome of an operation that was reported as unknown will be
// told, should it become known: when a partition heals after the give-up time, the
// target can say from its cache what ran.
type Later struct {
	done   chan struct{}
	result Result
	data   []byte // what the operation returned, when it ran and returns something
}

// Done is closed when the outcome is known, or known never to be.
func (l *Later) Done() <-chan struct{} { return l.done }

// Outcome returns the final result, once Done is closed, and what the operation
// returned. A fate of Unknown is final.
func (l *Later) Outcome() (Result, []byte) { return l.result, l.data }

// Complete implements Completer.
func (l *Later) Complete(op *Op, r Result) {
	l.result, l.data = r, op.Result
	close(l.done)
}

// suspend completes what is in flight of a session that has given up, as unknown,
// and keeps what it takes to find out later. Each operation gets a stand-in in
// its frames, since its ring entry is the poster's again.
func (c *conn) suspend() {
	p := c.p
	if p.limbo != nil {
		p.limbo.close(session.GaveUp) // one at a time: the older one stays unknown
	}
	p.limbo = c
	p.e.limbos = append(slices.DeleteFunc(p.e.limbos, (*conn).resolved), c)
	c.until = p.e.now + resumeFor
	c.ini.ForgetUnsent(func(psn uint32) {
		c.fail(psn, Result{Fate: NotExecuted, Reason: session.GaveUp})
	})
	stand := map[*Op]*Op{}
	for _, segs := range c.frames {
		for i := range segs {
			s := &segs[i]
			op := s.op
			in := stand[op]
			if in == nil {
				in = standIn(op)
				stand[op] = in
			}
			in.pending++
			s.op = in
			op.fail(Result{Fate: Unknown, Reason: session.GaveUp, Later: in.Done.(*Later)})
			(&segment{op: op}).settle()
		}
	}
}

// resolved reports whether a session that was suspended is not any more.
func (c *conn) resolved() bool { return c.p.limbo != c }

// sacrifice gives up on the session that has been suspended for longest, so that
// its buffers and its place serve those that can be reached. It returns false when
// none is suspended.
func (e *Engine) sacrifice() bool {
	for len(e.limbos) > 0 {
		c := e.limbos[0]
		e.limbos = e.limbos[1:]
		if !c.resolved() {
			c.close(session.GaveUp)
			e.table.remove(c)
			return true
		}
	}
	return false
}

// standIn returns an operation that takes the place of op in a suspended session:
// with the results that are there, and the failure that there is. An array of which
// a part was never sent cannot succeed any more.
func standIn(op *Op) *Op {
	in := &Op{
		Peer: op.Peer, Done: &Later{done: make(chan struct{})},
		Verb: op.Verb, Opcode: op.Opcode, Datatype: op.Datatype, Count: op.Count,
		Result: bytes.Clone(op.Result),
		sent:   op.elements(), ran: op.ran, failed: op.failed, bad: op.bad,
	}
	if op.sent < op.elements() {
		in.fail(Result{Fate: NotExecuted, Reason: session.GaveUp})
	}
	return in
}

// resumed is called when a new session is open: its hello-ack says how far the
// target got in the suspended one.
func (p *Peer) resumed() {
	c := p.limbo
	if c == nil {
		return
	}
	known := p.conn.ini.Resumed()
	if was := c.ini.Identity(); known.Session != was.Session || known.Epoch != was.Epoch {
		c.close(session.PeerRestarted)
		return
	}
	c.ini.Settle(p.e.now, known.PSN, func(psn uint32) {
		c.fail(psn, Result{Fate: NotExecuted, Reason: session.GaveUp})
	})
	c.progress()
}
