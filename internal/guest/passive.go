// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"fmt"
	"sync"

	"github.com/xdpfab/xdpfab/internal/node"
	"github.com/xdpfab/xdpfab/internal/share"
)

// hostListener is a passive endpoint of a domain whose host takes the requests: a
// goroutine asks for one after the other.
type hostListener struct {
	a      *Attached
	number uint16
	place  func(context.Context) func(*share.Request)
	closed context.Context
	close  context.CancelFunc

	mu    sync.Mutex // held while the goroutine begins and ends
	halt  func()     // ends the goroutine; nil before there is one
	ended bool
	asks  sync.WaitGroup
}

// ListenAtHost implements node.Upstream.
func (a *Attached) ListenAtHost(number uint16, place func(context.Context) func(*share.Request)) node.Requests {
	h := &hostListener{a: a, number: number, place: place}
	h.closed, h.close = context.WithCancel(context.Background())
	return h
}

// Listen has the host listen. Later calls change nothing.
func (h *hostListener) Listen() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.halt != nil {
		return nil
	}
	return h.begin()
}

// Again gives another host the passive endpoint. What asked the former one asks no more:
// it may have been waiting for a place, and not have noticed that it ended.
func (h *hostListener) Again(s share.Passive, listens bool) error {
	if h.closed.Err() != nil {
		return nil
	}
	if _, _, err := h.a.Passive(s); err != nil || !listens {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.halt != nil {
		h.halt()
	}
	return h.begin()
}

// begin has the host listen, and asks it for requests. mu is held.
func (h *hostListener) begin() error {
	if err := h.a.Call(context.Background(), share.CallListen, h.number, nil); err != nil {
		return fmt.Errorf("xdpfab: passive endpoint %d: %w", h.number, err)
	}
	if h.ended {
		return nil
	}
	ctx, halt := context.WithCancel(h.closed)
	h.halt = halt
	h.asks.Go(func() { h.ask(ctx) })
	return nil
}

// ask asks the host for requests, until it ends or the context does.
func (h *hostListener) ask(ctx context.Context) {
	for ctx.Err() == nil {
		fill := h.place(ctx)
		if fill == nil {
			return
		}
		var x share.Request
		if err := h.a.listenFor(ctx, share.CallHear, h.number, &x); err != nil {
			fill(nil)
			return
		}
		fill(&x)
	}
}

// Reply has the host answer a request.
func (h *hostListener) Reply(x share.Decision) (done bool, err error) {
	return true, h.a.Call(context.Background(), share.CallReply, x, nil)
}

// End ends the goroutine, and closes the endpoint at the host, unless the host has ended.
func (h *hostListener) End() {
	h.close()
	h.mu.Lock()
	first := !h.ended
	h.ended = true
	h.mu.Unlock()
	h.asks.Wait()
	if first {
		_ = h.a.Call(context.Background(), share.CallUnlisten, h.number, nil)
	}
}
