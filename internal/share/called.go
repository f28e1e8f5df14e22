// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/engine"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// The guest's side of callee.go.

// called are the sessions whose calls the guest's functions answer.
type called struct {
	sessions map[uint64]*calledSession // by number
	any      atomic.Bool               // some have replies
	call     wire.Call                 // scratch

	mu      sync.Mutex
	replied []*calledSession // that may have replies; the oldest first
}

type calledSession struct {
	session.Callee
	number uint64
	listed bool // in called.replied; guarded by its mu
}

// tell records that a session may have replies. Any goroutine.
func (c *called) tell(s *calledSession) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !s.listed {
		s.listed = true
		c.replied = append(c.replied, s)
		c.any.Store(true)
	}
}

// ask takes a record of a call, and returns false if there is no room for the reply that
// says that no function has it.
func (c *GuestRing) ask(r *record, request []byte) bool {
	if !c.room() {
		return false
	}
	status := wire.StatusNotExecuted // the endpoint has been closed
	if s := c.calledSession(r); s != nil {
		call := &c.in.called.call
		*call = wire.Call{Request: request, Most: uint32(r.Length), Source: r.Source}
		status = s.Ask(uint32(r.Tag), call)
	}
	if status != wire.StatusOK {
		c.putReply(r.Session, uint32(r.Tag), status, &wire.Reply{})
	}
	return true
}

// calledSession returns the session of a call, or nil if its endpoint has no function.
func (c *GuestRing) calledSession(r *record) *calledSession {
	if s := c.in.called.sessions[r.Session]; s != nil {
		return s
	}
	s := &calledSession{number: r.Session}
	from := r.addr()
	from.Endpoint = 0 // it is that of the call
	if s.Callee = c.in.to.Callee(r.Endpoint, from, func() { c.in.called.tell(s) }); s.Callee == nil {
		return nil
	}
	c.in.called.sessions[r.Session] = s
	return s
}

// endCalled ends a session, if it is one with calls.
func (c *GuestRing) endCalled(number uint64) {
	if s := c.in.called.sessions[number]; s != nil {
		s.Close()
		delete(c.in.called.sessions, number)
	}
}

// reply passes replies on until there is no room.
func (c *GuestRing) reply() {
	x := &c.in.called
	x.any.Store(false) // before what is listed is looked at
	for {
		x.mu.Lock()
		if len(x.replied) == 0 {
			x.mu.Unlock()
			return
		}
		s := x.replied[0]
		x.replied, s.listed = slices.Delete(x.replied, 0, 1), false
		x.mu.Unlock()
		if !c.replyOf(s) {
			x.tell(s)
			return
		}
	}
}

// replyOf passes the replies of a session on. It returns false if there is no room.
func (c *GuestRing) replyOf(s *calledSession) bool {
	for c.in.called.sessions[s.number] == s {
		psn, r, status, ok := s.Answered()
		if !ok {
			break
		}
		if !c.room() || !c.putReply(s.number, psn, status, r) {
			return false
		}
		s.Drop()
	}
	return true
}

// putReply posts a reply, for which the submission ring has room. It returns false if the
// arena has none.
func (c *GuestRing) putReply(number uint64, psn uint32, status wire.Status, r *wire.Reply) bool {
	e := &c.entry
	*e = engine.Entry{Verb: VerbReply, Key: number, Cookie: uint64(psn), Opcode: uint8(r.Kind), Datatype: uint8(status),
		Count: uint32(len(r.Bytes)), Offset: uint64(r.Length)}
	to := e.Inline[:]
	var b block
	if len(r.Bytes) > len(to) {
		if !c.take(&b, len(r.Bytes)) {
			return false
		}
		to = c.segment.arena[b.at:][:len(r.Bytes)]
		e.Flags = engine.FlagOutside
	}
	copy(to, r.Bytes)
	c.putAnswer(e, b)
	return true
}

// putAnswer posts an entry that has no completion, and whose block is free once the host
// has taken it.
func (c *GuestRing) putAnswer(e *engine.Entry, b block) {
	if b.len > 0 {
		*placesOf(e) = places{Operand: uint64(b.at)}
		c.answers = append(c.answers, answer{b, c.posted})
	}
	c.segment.entries[c.posted&c.mask()] = *e
	c.posted++
	c.noted = true
}
