// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"sync/atomic"
)

// Sessions whose next message waits for room at the owner of the target. When a receive
// is posted, or messages have been received, they try again: see [Engine.Room].

// waiters are those sessions.
type waiters struct {
	all  []*target
	room atomic.Bool // set by Room, cleared by the engine's thread
}

// Room says that messages that had to wait may find room now. Any goroutine may call it,
// with any locks held: it only leaves a note.
func (e *Engine) Room() {
	e.waiters.room.Store(true)
	e.mail.Store(true)
	e.Wake()
}

// wait notes that the next message of a session waits.
func (t *target) wait() {
	if !t.waits {
		t.waits = true
		t.e.waiters.all = append(t.e.waiters.all, t)
	}
}

// leave takes a session that has ended off the list.
func (w *waiters) leave(t *target) {
	if t.waits {
		t.waits = false
		w.all = slices.DeleteFunc(w.all, func(x *target) bool { return x == t })
	}
}

// retryWaiting lets the sessions that wait try again.
func (e *Engine) retryWaiting() int {
	if !e.waiters.room.Load() {
		return 0
	}
	e.waiters.room.Store(false) // before looking: a goroutine that makes room sets it afterwards
	tried := e.waiters.all
	e.waiters.all = nil
	for _, t := range tried {
		if !t.waits {
			continue // it has ended meanwhile
		}
		if t.waits = false; !t.dying {
			o := t.s.Retry()
			t.came(&o)
		}
	}
	return len(tried)
}
