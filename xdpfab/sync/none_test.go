// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/xdpfab"
)

// What is nil or a zero value fails with ErrClosed, and not with a panic.
func TestNone(t *testing.T) {
	ctx := t.Context()
	f := func(context.Context, uint64) (uint64, error) { return 0, nil }
	each(t, "Mutex", func(m *Mutex) []error {
		_, _, err := m.TryLock(ctx)
		return []error{second(m.Lock(ctx)), err}
	})
	each(t, "RWMutex", func(m *RWMutex) []error {
		_, _, err := m.TryLock(ctx)
		_, _, err2 := m.TryRLock(ctx)
		return []error{second(m.Lock(ctx)), second(m.RLock(ctx)), err, err2}
	})
	each(t, "Semaphore", func(s *Semaphore) []error {
		_, _, err := s.TryAcquire(ctx)
		return []error{second(s.Acquire(ctx)), err}
	})
	each(t, "Once", func(o *Once) []error { return []error{second(o.Do(ctx, f))} })
	each(t, "Election", func(e *Election) []error {
		_, _, _, err := e.Leader(ctx)
		_, _, err2 := e.TryCampaign(ctx, 1)
		return []error{err, second(e.Campaign(ctx, 1)), err2}
	})
	each(t, "Sequencer", func(s *Sequencer) []error { return []error{second(s.Take(ctx, 1)), second(s.Next(ctx))} })
	each(t, "Queue", func(q *Queue) []error {
		_, _, err := q.TryTake(ctx)
		return []error{err, q.Put(ctx, 1), second(q.Take(ctx)), second(q.TryPut(ctx, 1))}
	})
	each(t, "Barrier", func(b *Barrier) []error { return []error{second(b.Await(ctx))} })
	each(t, "Countdown", func(c *Countdown) []error {
		return []error{c.Done(ctx, 0), second(c.Left(ctx)), c.Wait(ctx)}
	})
	each(t, "Limiter", func(l *Limiter) []error { return []error{second(l.Allow(ctx, "c", 1))} })
	each(t, "Counter", func(c *Counter) []error { return []error{c.Add(ctx, 1), second(c.Sum(ctx))} })
	each(t, "Histogram", func(h *Histogram) []error { return []error{h.Record(ctx, 1), second(h.Counts(ctx))} })
	each(t, "Board", func(b *Board) []error { return []error{b.Post(ctx, 0, 1), second(b.Top(ctx, 1))} })
	each(t, "Held", func(h *Held) []error {
		if left := h.Left(); left > 0 || h.Token() != 0 || !h.Until().IsZero() {
			t.Errorf("what is not held has token %d, and %v left", h.Token(), left)
		}
		return []error{h.Unlock(), context.Cause(h.Context())}
	})
}

// A call without a context says so.
func TestNoContext(t *testing.T) {
	w := newWorld(t, 1, 1)
	calls := everyCall(t, w.at(1, 0).Home.(*xdpfab.Peer))
	calls["NewCounter"] = func(ctx context.Context) error { return second(NewCounter(ctx, w.at(1, 3072))) }
	var none context.Context
	for name, call := range calls {
		err := call(none)
		if !errors.Is(err, xdpfab.ErrArgument) || !errors.Is(err, xdpfab.ErrNotExecuted) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkText(t, name, err)
	}
}

// each calls the methods of a part that is nil, and of one that is a zero value.
func each[T any](t *testing.T, name string, call func(part *T) []error) {
	t.Helper()
	for i, part := range []*T{nil, new(T)} {
		for n, err := range call(part) {
			if !errors.Is(err, xdpfab.ErrClosed) || !errors.Is(err, xdpfab.ErrNotExecuted) {
				t.Errorf("%s, %d of nil and zero, call %d: %v", name, i, n, err)
				continue
			}
			checkText(t, name, err)
		}
	}
}

// A constructor that fails returns no part.
func TestNoPartWithError(t *testing.T) {
	ctx, at, lease := t.Context(), Place{Region: "parts"}, time.Second // without a home
	for name, none := range map[string]bool{
		"NewMutex":     failed(NewMutex(ctx, at, lease)),
		"NewRWMutex":   failed(NewRWMutex(ctx, at, 1, lease)),
		"NewSemaphore": failed(NewSemaphore(ctx, at, 1, lease)),
		"NewOnce":      failed(NewOnce(ctx, at, lease)),
		"NewElection":  failed(NewElection(ctx, at, lease)),
		"NewSequencer": failed(NewSequencer(ctx, at, 1)),
		"NewQueue":     failed(NewQueue(ctx, at, 1)),
		"NewBarrier":   failed(NewBarrier(ctx, at, 1, 0)),
		"NewCountdown": failed(NewCountdown(ctx, at, 1)),
		"NewLimiter":   failed(NewLimiter(ctx, at, 1, 1, time.Second)),
		"NewCounter":   failed(NewCounter(ctx, at)),
		"NewHistogram": failed(NewHistogram(ctx, at, 1)),
		"NewBoard":     failed(NewBoard(ctx, at, 1)),
	} {
		if !none {
			t.Errorf("%s: a part, or no error", name)
		}
	}
}

func failed[T any](part *T, err error) bool { return part == nil && err != nil }
