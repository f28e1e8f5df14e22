// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// scrapeEvery is how long clients share an answer of the pollers.
	scrapeEvery = time.Second
	// aliveLimit is how long a poller may take to answer.
	aliveLimit = 5 * time.Second
)

// shared asks the pollers a question for all clients together: one at a time, and one
// each so often. So the clients of a poller that hangs leave one goroutine behind,
// however many they are.
type shared[T any] struct {
	ask   func() (T, error) // waits for the pollers
	every time.Duration     // clients share an answer for as long
	whose func() string     // the poller that is being asked; nil if that is not known

	mu   sync.Mutex
	last *question[T] // nil before the first
}

// question is a question that was asked, and its answer.
type question[T any] struct {
	asked    time.Time
	answered chan struct{} // closed after all below was written
	at       time.Time     // of the answer
	value    T
	err      error
}

// pollers asks whether the pollers live.
func pollers(alive func(asks func(queue int)), every time.Duration) *shared[bool] {
	var queue atomic.Int64 // whose poller is being asked
	return &shared[bool]{every: every,
		ask:   func() (bool, error) { alive(func(q int) { queue.Store(int64(q)) }); return true, nil },
		whose: func() string { return fmt.Sprintf("the poller of queue %d", queue.Load()) }}
}

// get returns the last answer, or waits for the next one: until the client leaves, and no
// longer than a poller may take.
func (s *shared[T]) get(ctx context.Context) (T, error) {
	q := s.current()
	late := time.NewTimer(time.Until(q.asked.Add(aliveLimit)))
	defer late.Stop()
	var err error
	select {
	case <-q.answered:
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		poller := "a poller"
		if s.whose != nil {
			poller = s.whose()
		}
		err = fmt.Errorf("%s has not answered for %v: it hangs, or gets no time on its core", poller,
			time.Since(q.asked).Truncate(time.Second))
	}
	if q.isAnswered() { // also if it is late by now, or came in the same moment
		return q.value, q.err
	}
	return *new(T), err
}

// current returns the question that answers a client who asks now.
func (s *shared[T]) current() *question[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && !s.last.stale(s.every) {
		return s.last
	}
	q := &question[T]{asked: time.Now(), answered: make(chan struct{})}
	s.last = q
	go func() {
		q.value, q.err = s.ask()
		q.at = time.Now()
		close(q.answered)
	}()
	return q
}

// stale reports whether the answer is too old for another client.
func (q *question[T]) stale(every time.Duration) bool {
	return q.isAnswered() && time.Since(q.at) >= every
}

func (q *question[T]) isAnswered() bool {
	select {
	case <-q.answered:
		return true
	default:
		return false
	}
}
