// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"context"
	"sync"

	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Session hands over the requests of one session. It implements session.Callee: all
// exported methods are for the engine's thread.
type Session struct {
	h      *Handler
	from   wire.Addr
	party  *party
	key    session.Party
	told   func() // the engine, that a request has ended
	ctx    context.Context
	cancel context.CancelFunc

	asked [session.MaxWindow]*request // by psn: those that the function has, or will have
	free  []*request
	now   *request // that Answered returns

	mu          sync.Mutex
	first, last *request // that have ended, in that order
	gone        bool     // the session is released: nobody takes what ends
}

// keptRequests is how many requests a session keeps the memory of.
const keptRequests = 16

// NewSession returns the callee of a session that was begun by a node at an address.
func (h *Handler) NewSession(from wire.Addr, key session.Party, told func()) *Session {
	s := &Session{h: h, from: from, key: key, told: told}
	s.ctx, s.cancel = context.WithCancel(h.ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.parties[key]
	if p == nil {
		p = new(party)
		h.parties[key] = p
	}
	p.sessions++
	s.party = p
	return s
}

// Ask implements session.Callee.
func (s *Session) Ask(psn uint32, c *wire.Call) wire.Status {
	h := s.h
	if h.closed.Load() {
		return wire.StatusNotExecuted
	}
	if !h.admit(s.party) {
		return wire.StatusNoRoom
	}
	r := s.take()
	r.psn, r.source, r.most = psn, c.Source, int(min(c.Most, wire.MaxFrame))
	r.in = append(r.in[:0], c.Request...)
	r.state.Store(waits)
	h.load.Add(1)
	select {
	case h.queue <- r:
	default: // it has requests that were recalled
		h.load.Add(-1)
		h.leave(s.party)
		s.recycle(r)
		return wire.StatusNoRoom
	}
	s.asked[psn%session.MaxWindow] = r
	h.post.call()
	h.staff()
	if h.closed.Load() { // and perhaps the queue was emptied before: see Handler.Close
		r.recall()
	}
	return wire.StatusOK
}

// take returns a request to fill in.
func (s *Session) take() *request {
	if n := len(s.free); n > 0 {
		r := s.free[n-1]
		s.free = s.free[:n-1]
		return r
	}
	return &request{s: s}
}

// recycle keeps a request for the next one. One that was recalled may still be in the
// queue.
func (s *Session) recycle(r *request) {
	if len(s.free) < keptRequests && r.state.Load() != recalled {
		r.next = nil
		s.free = append(s.free, r)
	}
}

// Answered implements session.Callee.
func (s *Session) Answered() (psn uint32, reply *wire.Reply, status wire.Status, ok bool) {
	if s.now == nil {
		s.mu.Lock()
		if s.now = s.first; s.now != nil {
			if s.first = s.now.next; s.first == nil {
				s.last = nil
			}
		}
		s.mu.Unlock()
	}
	if s.now == nil {
		return 0, nil, 0, false
	}
	return s.now.psn, &s.now.reply, s.now.status, true
}

// Drop implements session.Callee.
func (s *Session) Drop() {
	r := s.now
	s.now, s.asked[r.psn%session.MaxWindow] = nil, nil
	s.h.leave(s.party)
	s.recycle(r)
}

// Recall implements session.Callee.
func (s *Session) Recall() {
	for _, r := range s.asked {
		if r != nil {
			r.recall()
		}
	}
}

// Close implements session.Callee.
func (s *Session) Close() {
	s.cancel()
	s.mu.Lock()
	s.gone = true
	ended := s.first
	s.first, s.last = nil, nil
	s.mu.Unlock()
	s.Recall()
	for ; ended != nil; ended = ended.next {
		s.h.leave(s.party)
	}
	if s.now != nil {
		s.h.leave(s.party)
	}
	s.h.mu.Lock()
	defer s.h.mu.Unlock()
	if s.party.sessions--; s.party.sessions == 0 && s.h.parties[s.key] == s.party {
		delete(s.h.parties, s.key)
	}
}
