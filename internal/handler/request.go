// SPDX-License-Identifier: Apache-2.0

package handler

import (
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/wire"
)

// request is one request, from its arrival until the engine has the reply.
type request struct {
	s      *Session
	psn    uint32
	source uint16
	most   int // bytes of the reply that the initiator has room for
	state  atomic.Uint32
	in     []byte
	out    []byte // the reply, as far as there is room for it
	reply  wire.Reply
	status wire.Status
	next   *request // in Session.ended
}

// The states. Whoever changes the first one decides how the request ends.
const (
	waits    uint32 = iota // in the queue
	runs                   // a goroutine has it
	recalled               // the function will never have it, though the queue may
)

// answer has the function answer the request, unless it was recalled.
func (r *request) answer() {
	if !r.state.CompareAndSwap(waits, runs) {
		return
	}
	h := r.s.h
	if h.closed.Load() { // it was recalled, only that the goroutine was faster
		r.status = wire.StatusNotExecuted
		r.finish()
		return
	}
	reply, kind := h.call(r)
	if kind != wire.ReplyPanic {
		r.end(reply, kind)
	}
}

// end tells the session the reply.
func (r *request) end(reply []byte, kind wire.ReplyKind) {
	r.out = append(r.out[:0], reply[:min(len(reply), r.most)]...)
	r.reply = wire.Reply{Kind: kind, Length: uint32(len(reply)), Bytes: r.out}
	r.status = wire.StatusOK
	r.finish()
}

// finish hands the request back to its session.
func (r *request) finish() {
	s := r.s
	s.h.load.Add(-1)
	s.mu.Lock()
	gone := s.gone
	if !gone {
		if s.last == nil {
			s.first = r
		} else {
			s.last.next = r
		}
		s.last = r
	}
	s.mu.Unlock()
	if gone {
		s.h.leave(s.party)
		return
	}
	s.told()
}

// recall ends the request, if no goroutine has it yet, and reports whether it did.
func (r *request) recall() bool {
	if !r.state.CompareAndSwap(waits, recalled) {
		return false
	}
	r.status = wire.StatusNotExecuted
	r.finish()
	return true
}
