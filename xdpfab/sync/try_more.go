// SPDX-License-Identifier: Apache-2.0

package sync

import "context"

// TryAcquire gets a permit if one is free, and reports whether it did. It waits for
// nobody, and overtakes nobody who waits in Acquire. So it also gets none while another
// program is about to get one. If ok is false, h is nil. For errors, and for permits of
// dead holders, see Mutex.TryLock.
func (s *Semaphore) TryAcquire(ctx context.Context) (h *Held, ok bool, err error) {
	if err := s.there(); err != nil {
		return nil, false, err
	}
	defer s.queue.named("TryAcquire", &err)
	turn, ok, err := s.tried(ctx, func(turn *Held, mem *memory) func(int, uint64) (bool, error) {
		return s.taking(ctx, turn, mem, &h)
	})
	if turn == nil {
		return nil, false, err
	}
	if lost := turn.Unlock(); ok && lost == nil {
		return h, true, nil
	}
	if h != nil { // others had the turn, and did not see the permit
		_ = h.Unlock()
	}
	return nil, false, err
}

// tried takes the turn, if that is free, and looks once at the permits, by the function
// that look returns. It reports what the function did. If turn is not nil, the caller has
// the turn, also after an error.
func (s *Semaphore) tried(ctx context.Context, look func(turn *Held, mem *memory) func(int, uint64) (bool, error)) (
	turn *Held, ok bool, err error) {
	for {
		turn, ok, err = s.queue.TryLock(ctx)
		if !ok {
			return nil, false, err
		}
		mem := turn.memory()
		s.tries.mu.Lock()
		ok, err = s.once(turn, mem, s.tries.in(mem, s.queue.size-queueWords), look(turn, mem))
		s.tries.mu.Unlock()
		if err == nil || ctx.Err() != nil || turn.Context().Err() == nil && !s.queue.restarted(mem, err) {
			return turn, ok, s.queue.again(ctx, mem, err)
		}
		_ = turn.Unlock()
	}
}

// TryRLock gets the lock as a reader if it is free for readers, and reports whether it
// did: see Semaphore.TryAcquire.
func (m *RWMutex) TryRLock(ctx context.Context) (h *Held, ok bool, err error) {
	if err := m.there(); err != nil {
		return nil, false, err
	}
	defer m.readers.queue.named("TryRLock", &err)
	return m.readers.TryAcquire(ctx)
}

// TryLock gets the lock as the writer if nobody has it, and reports whether it did: see
// Semaphore.TryAcquire.
func (m *RWMutex) TryLock(ctx context.Context) (h *Held, ok bool, err error) {
	if err := m.there(); err != nil {
		return nil, false, err
	}
	defer m.readers.queue.named("TryLock", &err)
	turn, ok, err := m.readers.tried(ctx, func(*Held, *memory) func(int, uint64) (bool, error) { return m.unread() })
	switch {
	case ok:
		return turn, true, nil
	case turn != nil:
		_ = turn.Unlock()
	}
	return nil, false, err
}

// TryCampaign makes the caller the leader if nobody leads or campaigns, publishes its
// value, and reports whether it did. It waits for nobody: see Mutex.TryLock.
func (e *Election) TryCampaign(ctx context.Context, value uint64) (h *Held, ok bool, err error) {
	if err := e.there(); err != nil {
		return nil, false, err
	}
	defer e.m.named("TryCampaign", &err)
	for {
		h, ok, err := e.m.TryLock(ctx)
		if !ok {
			return nil, false, err
		}
		switch again, err := e.lead(ctx, h, value); {
		case err == nil:
			return h, true, nil
		case !again:
			return nil, false, err
		}
	}
}
