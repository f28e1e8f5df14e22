// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/xdpfab"
)

// SemaphoreBytes returns the size of a Semaphore with the given number of permits, or of
// an RWMutex for the given number of readers.
func SemaphoreBytes(permits int) int { return bytesOf(queueWords + permits) }

// Semaphore is a number of permits with leases. Programs get them in the order in which
// they ask.
//
//	words 2 to 31    a Mutex: the queue
//	word 32 + i      permit i: the ticket of its holder (48 bits) and the holder's beat (16), or 0
//
// Invariant: a permit changes only from 0 to a ticket, and from a ticket to 0 only if the
// holder releases it, or has not written for more than a lease. A permit counts as held
// only if nobody else got the turn before the permit was written. So the program that has
// the turn sees all permits that others hold.
type Semaphore struct {
	queue *Mutex
	tries tries // of TryAcquire
}

// NewSemaphore returns the semaphore at a place. All programs must name the same number
// of permits and the same lease.
func NewSemaphore(ctx context.Context, at Place, permits int, lease time.Duration) (*Semaphore, error) {
	return newSemaphore(ctx, at, kindSemaphore, permits, lease)
}

func newSemaphore(ctx context.Context, at Place, k kind, permits int, lease time.Duration) (*Semaphore, error) {
	if permits < 1 || permits > mostWords {
		return nil, errno.Refuse(ErrParameter, "xdpfab: New%s with %d %s: want 1 to %d", k.bare(), permits,
			strings.TrimPrefix(kinds[k].parameters, "lease, "), mostWords)
	}
	queue, err := newMutex(ctx, at, k, uint64(permits), lease)
	return made(&Semaphore{queue: queue}, err)
}

// Acquire waits until the caller has a permit. After an error it has none. Held.Unlock
// releases the permit; so does the end of ctx. For a silent home, see Mutex.Lock.
func (s *Semaphore) Acquire(ctx context.Context) (h *Held, err error) {
	if err := s.there(); err != nil {
		return nil, err
	}
	defer s.queue.named("Acquire", &err)
	for {
		turn, err := s.queue.Lock(ctx)
		if err != nil {
			return nil, err
		}
		h, err := s.take(ctx, turn)
		switch lost := turn.Unlock(); {
		case err == nil && lost == nil:
			return h, nil
		case err == nil: // others had the turn, and did not see the permit
			_ = h.Unlock()
		case ctx.Err() != nil || turn.Context().Err() == nil:
			return nil, err
		}
	}
}

// take waits for a free permit, and takes it. The caller has the turn.
func (s *Semaphore) take(ctx context.Context, turn *Held) (h *Held, err error) {
	mem := turn.memory()
	all := s.queue.size - queueWords
	held := fmt.Sprintf("no permit of %d was free: %s", all, s.queue.patience())
	return h, s.look(turn, mem, held, s.taking(ctx, turn, mem, &h))
}

// taking returns a function that takes a free permit, as h.
func (s *Semaphore) taking(ctx context.Context, turn *Held, mem *memory, h **Held) func(int, uint64) (bool, error) {
	own := (turn.token-mem.epoch)<<beatBits | 1
	return func(i int, was uint64) (bool, error) {
		if was != 0 {
			return false, nil
		}
		began := time.Now()
		word := uint64(queueWords + i)
		was, err := exchange(turn.Context(), mem.at(word), 0, own)
		switch {
		case err != nil:
			mem.giveBack(turn.Context(), word, own, err)
		case was == 0:
			*h = s.queue.hold(ctx, mem, word, own, 0, s.queue.lease, began)
		}
		return *h != nil, err
	}
}

// giveBack releases a permit that the caller got without knowing it, once that is known.
func (m *memory) giveBack(ctx context.Context, word, own uint64, err error) {
	if !errors.Is(err, xdpfab.ErrOutcomeUnknown) {
		return
	}
	go func() {
		ctx := context.WithoutCancel(ctx)
		if was, err := xdpfab.Settle(ctx, own, err); err == nil && was == 0 {
			_, _ = exchange(ctx, m.at(word), own, 0)
		}
	}()
}

// look shows f each permit, again and again, until f reports true, for which waited has
// words. It releases those whose lease is over. The caller has the turn.
func (s *Semaphore) look(turn *Held, mem *memory, waited string, f func(i int, was uint64) (bool, error)) error {
	seen := make([]sight, s.queue.size-queueWords)
	return s.queue.until(turn.Context(), s.queue.lease/16, func() string { return waited }, func() (bool, error) {
		done, err := s.once(turn, mem, seen, f)
		return done, certain(turn.Context(), err, xdpfab.ErrNotExecuted) // what f got unknowingly, it gives back
	})
}

// once is look for one time. seen is what the caller has seen of each permit before.
func (s *Semaphore) once(turn *Held, mem *memory, seen []sight, f func(i int, was uint64) (bool, error)) (bool, error) {
	now := make([]uint64, len(seen))
	if err := mem.words.LoadRange(turn.Context(), mem.first+queueWords, now); err != nil {
		return false, err
	}
	for i, was := range now {
		if was != 0 && seen[i].expired(was, s.queue.lease) {
			found, err := exchange(turn.Context(), mem.at(uint64(queueWords+i)), was, 0)
			if err != nil {
				return false, err
			}
			if found == was {
				was = 0
			}
		}
		if done, err := f(i, was); done || err != nil {
			return done, err
		}
	}
	return false, nil
}
