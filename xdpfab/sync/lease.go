// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// beatBits is how many bits of a leased word count the holder's writes, so that others
// see that it lives. Those above are its ticket, which nobody else ever has.
const beatBits = 16

// Held is a lock or a permit that the caller has. The lease is renewed until Unlock, or
// until the context of the call that made it ends, which also releases it. Invariant: as
// long as Left is positive, the word is the holder's, and nobody replaces it.
type Held struct {
	ctx   context.Context
	lose  context.CancelCauseFunc
	part  *part
	lease time.Duration
	word  uint64 // its number
	own   uint64 // what the holder has last written to it, as far as known
	free  uint64 // what releases it
	token uint64

	alone    func() bool // has the end of the caller's context no longer call release
	released sync.Once
	err      error // of the release; valid after it

	change sync.Mutex              // held by who changes the word; guards own and begun
	begun  *xdpfab.Pending[uint64] // the release that StartUnlock began; nil without one

	mu       sync.Mutex
	mem      *memory
	until    time.Time   // when the lease ends
	over     time.Time   // when Left became zero; valid once the context has ended
	timer    *time.Timer // of tick
	hindered error       // why the last renewal failed; nil if it did not
}

// hold begins to renew the lease of a word that was written after began.
func (p *part) hold(ctx context.Context, m *memory, word, own, free uint64, lease time.Duration,
	began time.Time) *Held {
	h := &Held{part: p, mem: m, lease: lease, word: word, own: own, free: free, token: m.epoch + own>>beatBits,
		until: began.Add(lease)}
	p.saw(h.token)
	h.ctx, h.lose = context.WithCancelCause(ctx)
	h.mu.Lock() // so that tick does not miss its timer
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(min(lease/4, time.Until(h.until)), h.tick)
	h.alone = context.AfterFunc(ctx, h.release)
	return h
}

// Context returns a context that ends when the lock or the permit is released, or may be
// lost. Pass it to the work that the lock protects. context.Cause then returns
// ErrReleased, the cause of the context of the call that made it, or an error that wraps
// ErrLost.
func (h *Held) Context() context.Context {
	if err := h.there(); err != nil {
		return closed(err)
	}
	return h.ctx
}

// Token returns the fencing token: a number greater than that of every earlier holder,
// even of those in former memory of the home, if clocks differ by less than the lease.
// The resource that the lock protects should refuse a token lower than one that it has
// seen, because a program that was stopped notices late that it has lost the lock.
func (h *Held) Token() uint64 {
	if h == nil {
		return 0
	}
	return h.token
}

// Left returns how long the lock or the permit is certain to be the caller's, even if the
// lease is not renewed. It is not positive once Context has ended.
func (h *Held) Left() time.Duration { return time.Until(h.Until()) }

// Until returns the time at which Left is zero, or became zero.
func (h *Held) Until() time.Time {
	if h.there() != nil {
		return time.Time{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ctx.Err() == nil {
		return h.until
	}
	if h.over.IsZero() {
		h.over = h.until
		if now := time.Now(); now.Before(h.until) {
			h.over = now
		}
	}
	return h.over
}

// memory returns the memory that has the word.
func (h *Held) memory() *memory {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.mem
}

// tick prolongs the lease, four times in each, and ends the context when it is over. No
// renewal that hangs keeps it from that.
func (h *Held) tick() {
	h.mu.Lock()
	left := time.Until(h.until)
	if left > 0 && h.ctx.Err() == nil {
		h.timer.Reset(min(h.lease/4, left))
	}
	h.mu.Unlock()
	switch {
	case left <= 0:
		h.lose(h.part.in("", h.notRenewed()))
		h.release()
	default:
		h.change.Lock()
		defer h.change.Unlock()
		h.extend()
	}
}

// extend writes the word again. The lease counts from before that. After any failure but
// a loss the next attempt may succeed before the lease ends.
func (h *Held) extend() {
	if h.ctx.Err() != nil {
		return
	}
	began := time.Now()
	ctx, cancel := context.WithDeadline(h.ctx, began.Add(h.lease/4))
	defer cancel()
	err := h.replace(ctx, next)
	if errors.Is(err, ErrLost) {
		h.lose(h.part.in("", err))
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hindered = err; err == nil {
		h.until = began.Add(h.lease)
	}
}

// stopWork is what a program does that has lost a lease.
const stopWork = "stop what it protects, and ask for it again"

// notRenewed is the error of a lease that ended before it was renewed.
func (h *Held) notRenewed() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.hindered != nil {
		// only the text: the certainty is that of one renewal, and not of the loss
		return fmt.Errorf("not renewed in time: %w: %s: %s", ErrLost, stopWork,
			strings.TrimPrefix(h.hindered.Error(), "xdpfab: "))
	}
	return fmt.Errorf("not renewed in time: %w: %s", ErrLost, stopWork)
}

// next is a leased word after another beat.
func next(own uint64) uint64 { return own>>beatBits<<beatBits | uint64(uint16(own+1)) }

// replace replaces the word, whichever of the holder's own writes was the last to run: an
// unknown outcome of the one before needs nothing else.
func (h *Held) replace(ctx context.Context, to func(own uint64) uint64) error {
	for own, m := h.own, h.memory(); ; {
		was, err := h.exchange(ctx, m, own, to(own))
		switch {
		case h.part.restarted(m, err):
			again, err := h.part.memory(ctx)
			if err == nil && again.epoch != m.epoch {
				err = fmt.Errorf("%w: %w: %s", ErrMemoryLost, ErrLost, stopWork)
			}
			if err != nil {
				return err
			}
			h.mu.Lock()
			h.mem, m = again, again
			h.mu.Unlock()
		case err != nil:
			return err
		case was == own:
			h.own = to(own)
			return nil
		case was>>beatBits == own>>beatBits:
			own = was
		default:
			return fmt.Errorf("another program has taken it: %w: %s", ErrLost, stopWork)
		}
	}
}

// checkLease refuses a lease that renewals cannot keep.
func checkLease(k kind, lease time.Duration) error {
	if lease < time.Millisecond {
		return errno.Refuse(ErrParameter,
			"xdpfab: New%s with a lease of %v: want at least 1ms, better some hundred round trips", k.bare(), lease)
	}
	return nil
}
