// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sync

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
)

// No more programs than there are permits have one, whatever dies.
func TestSemaphoreHolders(t *testing.T) {
	contend(t, 2, func(ctx context.Context, at Place, _ *rand.Rand) (*Held, bool, error) {
		s, err := NewSemaphore(ctx, at, 2, testLease)
		if err != nil {
			return nil, false, err
		}
		h, err := s.Acquire(ctx)
		return h, false, err
	})
}

// No reader has the lock while a writer has it, nor have two writers.
func TestRWMutex(t *testing.T) {
	contend(t, 3, func(ctx context.Context, at Place, rng *rand.Rand) (*Held, bool, error) {
		m, err := NewRWMutex(ctx, at, 3, testLease)
		if err != nil {
			return nil, false, err
		}
		writes := rng.IntN(3) == 0
		lock := m.RLock
		if writes {
			lock = m.Lock
		}
		h, err := lock(ctx)
		return h, writes, err
	})
}

// All permits can be had at the same time, and no more; readers share, a writer does not.
func TestPermits(t *testing.T) {
	const lease = time.Second
	w := newWorld(t, 1, 1)
	ctx := patient(t)
	s := must(NewSemaphore(ctx, w.at(1, 0), 2, lease))(t)
	m := must(NewRWMutex(ctx, w.at(1, 1024), 2, lease))(t)
	for name, acquire := range map[string]func(context.Context) (*Held, error){"permit": s.Acquire, "reader": m.RLock} {
		a, b := must(acquire(ctx))(t), must(acquire(ctx))(t)
		none := func(get func(context.Context) (*Held, error)) {
			t.Helper()
			soon, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			defer cancel()
			if _, err := get(soon); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: one too many: %v", name, err)
			}
		}
		none(acquire)
		if name == "reader" {
			none(m.Lock)
		}
		if err := errors.Join(a.Unlock(), b.Unlock()); err != nil {
			t.Error(err)
		}
		if name == "permit" {
			continue
		}
		h := must(m.Lock(ctx))(t)
		none(m.RLock)
		if err := h.Unlock(); err != nil {
			t.Error(err)
		}
	}
	for _, permits := range []int{0, 3, mostWords + 1} {
		_, err := NewSemaphore(ctx, w.at(1, 0), permits, lease)
		if !errors.Is(err, ErrParameter) && !errors.Is(err, ErrLayout) {
			t.Errorf("%d permits: %v", permits, err)
		}
	}
}
