// SPDX-License-Identifier: Apache-2.0

// Package handler has a function answer the calls of peers. The engines hand requests
// over and never wait: a request goes into a queue, a goroutine has the function answer
// it, and the session's engine is told.
//
// Each request has one of three ends: the function answers it; it is recalled before a
// goroutine has taken it, and the function never has it; or its session is released
// meanwhile, and nobody gets the reply.
package handler

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/xdpfab/xdpfab/internal/progress"
	"github.com/xdpfab/xdpfab/internal/session"
	"github.com/xdpfab/xdpfab/internal/wire"
)

// Function answers a request, which is valid until it returns. The reply is copied then.
type Function func(ctx context.Context, from wire.Addr, request []byte) (reply []byte, err error)

// Handler has the requests of all sessions with one endpoint answered.
type Handler struct {
	f         Function
	most      int32 // goroutines
	ctx       context.Context
	cancel    context.CancelFunc
	queue     chan *request
	closed    atomic.Bool
	held      atomic.Int32 // requests, until their replies are with the engine
	load      atomic.Int32 // those that wait for a goroutine, or have one
	goroutine atomic.Int32 // how many there are: at least the load, as far as there may be so many
	post      post

	mu      sync.Mutex
	parties map[session.Party]*party // with sessions
}

// party is the sessions of one source address, which share the room.
type party struct {
	sessions int // under Handler.mu
	held     atomic.Int32
}

// New returns a handler that holds so many requests at a time, and has so many goroutines
// at most. Attend must follow.
func New(f Function, requests, goroutines int) *Handler {
	h := &Handler{f: f, most: int32(goroutines), queue: make(chan *request, requests),
		parties: map[session.Party]*party{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Held returns how many requests the handler has.
func (h *Handler) Held() int { return int(h.held.Load()) }

// Close has the function get no more requests: those that no goroutine has taken end as
// not executed. The contexts of the others end; Close does not wait for them.
func (h *Handler) Close() {
	h.closed.Store(true) // before the queue is emptied: see Session.Ask
	h.cancel()
	h.post.call()
	for {
		select {
		case r := <-h.queue:
			r.recall()
		default:
			return
		}
	}
}

// admit counts a request in, if there is room: a party has at most as much as is left for
// all others.
func (h *Handler) admit(p *party) bool {
	if mine := p.held.Add(1); mine <= int32(cap(h.queue))-h.held.Add(1)+1 {
		return true
	}
	h.leave(p)
	return false
}

func (h *Handler) leave(p *party) {
	p.held.Add(-1)
	h.held.Add(-1)
}

// staff makes sure that there is a goroutine for each request that is to be answered, as
// far as there may be so many.
func (h *Handler) staff() {
	for {
		n := h.goroutine.Load()
		if n >= h.load.Load() || n >= h.most || h.closed.Load() {
			return
		}
		if h.goroutine.CompareAndSwap(n, n+1) {
			go h.work()
			progress.Readied()
			return
		}
	}
}

// work answers requests. One goroutine stays when there are no more, until the handler is
// closed. The function may end the goroutine; then another one takes its place.
func (h *Handler) work() {
	defer func() {
		h.goroutine.Add(-1)
		h.staff()
	}()
	for {
		select {
		case r := <-h.queue:
			r.answer()
		default:
			if h.closed.Load() || !h.post.attend(h) {
				return
			}
		}
	}
}

// call calls the function. A panic is a reply of its own kind, and so is a call of
// runtime.Goexit.
func (h *Handler) call(r *request) (reply []byte, kind wire.ReplyKind) {
	kind = wire.ReplyPanic
	defer func() {
		if kind != wire.ReplyPanic {
			return
		}
		text := "the function ended its goroutine"
		if v := recover(); v != nil {
			text = fmt.Sprint(v)
		}
		reply = []byte(text)
		r.end(reply, kind) // here, since of a goroutine that ends nothing else runs
	}()
	from := r.s.from
	from.Endpoint = r.source
	reply, err := h.f(r.s.ctx, from, r.in)
	if kind = wire.ReplyOK; err != nil {
		reply, kind = []byte(err.Error()), wire.ReplyFailed
	}
	return reply, kind
}
