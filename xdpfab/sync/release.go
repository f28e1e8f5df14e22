// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"time"

	"github.com/xdpfab/xdpfab/atomic"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// Unlock releases the lock or the permit. If there is no error, nobody else had it until
// then. If the error wraps ErrLost, another program may have it. After any other error it
// is free once the lease ends. Unlock returns within the lease. Every later call returns
// what the first one did, so a deferred Unlock may follow another one.
func (h *Held) Unlock() error {
	if err := h.there(); err != nil {
		return err
	}
	h.alone()
	h.lose(ErrReleased)
	h.release()
	return h.part.in("Unlock", h.err)
}

// StartUnlock begins to release the lock or the permit. It waits for the home only if the
// queue of operations is full. A Lock that follows is sent behind the release, often in
// the same packet, so a program that gets a lock again and again needs half the round
// trips. With manual progress, the next call that waits sends the release.
//
// If there is no error, nobody else had the lock or the permit until then. If the error
// wraps ErrLost, another program may have it. Others get it when the release arrives: a
// message that tells them may arrive before that. Unlock may follow: it waits for the
// release, and returns its error. Without Unlock, a release that fails costs the others a
// lease.
func (h *Held) StartUnlock() error {
	if err := h.there(); err != nil {
		return err
	}
	h.alone()
	h.lose(ErrReleased)
	ends := h.stop()
	if h.change.TryLock() {
		h.begin()
		h.change.Unlock()
	} else { // a renewal is under way, or the release
		go h.release()
	}
	switch cause := context.Cause(h.ctx); {
	case errors.Is(cause, ErrLost):
		return h.part.in("StartUnlock", cause)
	case !h.Until().Before(ends):
		return h.part.in("StartUnlock", h.notRenewed())
	}
	return nil
}

// begin posts the release, unless that was done before. The change is locked.
func (h *Held) begin() {
	if h.begun == nil && h.own != h.free {
		h.begun = h.memory().at(h.word).StartCompare(context.WithoutCancel(h.ctx), atomic.Cswap, h.own, h.free)
	}
}

// release releases the word, once, when the context has ended. All callers wait for it.
func (h *Held) release() { h.released.Do(h.giveUp) }

func (h *Held) giveUp() {
	h.change.Lock() // a renewal under way ends with the context
	defer h.change.Unlock()
	ends := h.stop()
	ctx, cancel := context.WithDeadline(context.WithoutCancel(h.ctx), ends)
	defer cancel()
	if h.err = h.replace(ctx, func(uint64) uint64 { return h.free }); time.Until(ends) <= 0 &&
		h.err != nil && !errors.Is(h.err, ErrLost) {
		h.err = tell(h.err, "%w: %s", ErrLost, stopWork)
	}
}

// stop ends the ticks, and what Until promises: the next holder may come from now on. It
// returns when the lease ends. A tick that is late finds that the context has ended.
func (h *Held) stop() (ends time.Time) {
	h.Until()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.timer.Stop()
	return h.until
}

// exchange compares and swaps the holder's word, or waits for the release that
// StartUnlock began.
func (h *Held) exchange(ctx context.Context, m *memory, own, to uint64) (was uint64, err error) {
	begun := h.begun
	if h.begun = nil; begun == nil {
		return exchange(ctx, m.at(h.word), own, to)
	}
	was, err = begun.Wait(ctx)
	return xdpfab.Settle(ctx, was, err)
}
