// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// holder is a context that ends when the lock is released, or may be lost.
type holder struct {
	context.Context
	lock
	// The fencing number is greater than those of all holders before. What the lock
	// protects refuses a number that is less than one it has seen, since a program that
	// was stopped notices its loss late.
	number uint64

	lose     context.CancelCauseFunc
	own      xdpfab.U128 // the word, as long as the lock is held
	released chan struct{}

	mu    sync.Mutex
	until time.Time // when the lease ends
}

var (
	errLost     = errors.New("the lock is lost")
	errReleased = errors.New("the lock is released")
)

// left returns for how long the lock is certain to be held.
func (h *holder) left() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.until)
}

// release frees the lock.
func (h *holder) release() {
	h.lose(errReleased)
	<-h.released
}

// renew prolongs the lease until the lock is lost or released.
func (h *holder) renew() {
	defer close(h.released)
	expired := time.AfterFunc(h.left(), func() { h.lose(errLost) })
	defer expired.Stop()
	pace := time.NewTicker(h.lease / 4)
	defer pace.Stop()
	for h.Err() == nil {
		select {
		case <-pace.C:
			if !h.extend() {
				h.lose(errLost)
			}
			expired.Reset(h.left())
		case <-h.Done():
		}
	}
	// Whatever becomes of this, the lease ends by itself.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h), h.lease)
	defer cancel()
	_, _ = h.word.CompareAndSwap(ctx, h.own, xdpfab.U128{Hi: h.own.Hi, Lo: h.mark})
}

// extend writes the word again. The lease counts from before that, where other programs
// count from after they have seen it.
func (h *holder) extend() bool {
	began := time.Now()
	next := xdpfab.U128{Hi: h.own.Hi, Lo: h.next()}
	call, cancel := context.WithTimeout(h, h.lease/4)
	swapped, err := h.word.CompareAndSwap(call, h.own, next)
	cancel()
	settle, cancel := context.WithTimeout(h, h.left())
	defer cancel()
	swapped, err = xdpfab.Settle(settle, swapped, err)
	if errors.Is(err, xdpfab.ErrNotExecuted) && !errors.Is(err, xdpfab.ErrPeerRestarted) {
		return true // so far: the next attempt may succeed before the lease ends
	}
	if swapped {
		h.own = next
		h.mu.Lock()
		h.until = began.Add(h.lease)
		h.mu.Unlock()
	}
	return swapped
}
