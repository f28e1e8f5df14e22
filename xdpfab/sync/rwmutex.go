// SPDX-License-Identifier: Apache-2.0

package sync

import (
	"context"
	"time"
)

// RWMutex is a lock with leases, for one writer or several readers. Readers and writers
// get it in the order in which they ask: a reader that asks after a writer gets it later.
//
// Its words are those of a Semaphore with a permit for each reader. A writer has the
// turn, and keeps it.
//
// Invariant: while a writer has the lock, no permit is held, and nobody can take one.
type RWMutex struct{ readers *Semaphore }

// NewRWMutex returns the lock at a place, for at most the given number of readers at a
// time. All programs must name the same number and the same lease. The lock takes
// SemaphoreBytes(readers).
func NewRWMutex(ctx context.Context, at Place, readers int, lease time.Duration) (*RWMutex, error) {
	s, err := newSemaphore(ctx, at, kindRWMutex, readers, lease)
	return made(&RWMutex{s}, err)
}

// RLock waits until the caller has the lock as a reader, as Mutex.Lock does.
func (m *RWMutex) RLock(ctx context.Context) (h *Held, err error) {
	if err := m.there(); err != nil {
		return nil, err
	}
	defer m.readers.queue.named("RLock", &err)
	return m.readers.Acquire(ctx)
}

// Lock waits until the caller has the lock as the writer, as Mutex.Lock does.
func (m *RWMutex) Lock(ctx context.Context) (h *Held, err error) {
	if err := m.there(); err != nil {
		return nil, err
	}
	defer m.readers.queue.named("Lock", &err)
	for {
		turn, err := m.readers.queue.Lock(ctx)
		if err != nil {
			return nil, err
		}
		first := turn.memory()
		err = m.readers.look(turn, first, "readers had the lock: "+m.readers.queue.patience(), m.unread())
		if err == nil {
			return turn, nil
		}
		lost := turn.Context().Err() != nil
		_ = turn.Unlock()
		if ctx.Err() != nil || !lost {
			return nil, err
		}
	}
}

// unread returns a function that reports, when it has seen the last permit, whether no
// reader has one.
func (m *RWMutex) unread() func(i int, was uint64) (bool, error) {
	last, held := int(m.readers.queue.size-queueWords)-1, false
	return func(i int, was uint64) (bool, error) {
		held = was != 0 || held && i > 0
		return i == last && !held, nil
	}
}
