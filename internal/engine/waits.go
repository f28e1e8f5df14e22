// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"sync/atomic"
)

// Sessions whose next message waits for room at the owner of the target. When a receive
// is posted, or messages have been received, they try again: see [Engine.Room].

// waiters are those sessions, in the order in which they try again.
type waiters struct {
	all   []*target
	tried []*target   // scratch
	room  atomic.Bool // set by Room, cleared by the engine's thread
}

// Room is called when messages that had to wait may find room now. Any goroutine may call
// it, with any locks held: it only leaves a note.
func (e *Engine) Room() {
	e.waiters.room.Store(true)
	e.mail.Store(true)
	e.Wake()
}

// wait records that the next message of a session waits.
func (t *target) wait() {
	if !t.waits {
		t.waits = true
		t.e.waiters.all = append(t.e.waiters.all, t)
	}
}

// leave takes a session that ended off the list.
func (w *waiters) leave(t *target) {
	if t.waits {
		t.waits = false
		w.all = slices.DeleteFunc(w.all, func(x *target) bool { return x == t })
	}
}

// retryWaiting lets the sessions that wait try again. The one that had the first choice
// is the last one next time, so that none gets all the room.
func (e *Engine) retryWaiting() int {
	if !e.waiters.room.Load() {
		return 0
	}
	e.waiters.room.Store(false) // before looking: a goroutine that makes room sets it afterwards
	if e.cfg.Room != nil {
		e.cfg.Room()
	}
	w := &e.waiters
	tried := w.all
	w.all, w.tried = w.tried[:0], tried
	for _, t := range tried {
		if !t.waits {
			continue // it has ended meanwhile
		}
		if t.waits = false; !t.dying {
			o := t.s.Retry()
			t.came(&o)
		}
	}
	if len(w.all) > 1 && w.all[0] == tried[0] {
		w.all = append(w.all[1:], tried[0])
	}
	clear(tried)
	return len(tried)
}
