// SPDX-License-Identifier: Apache-2.0

package engine

import "sync"

// callQueue holds functions for the engine's thread from callers that cannot wait for it,
// such as the thread of another engine. The callers bound their number.
type callQueue struct {
	mu  sync.Mutex
	all []func()
}

// Call has f run on the engine's thread during a coming step. It returns false
// when too many calls wait already.
func (e *Engine) Call(f func()) bool {
	select {
	case e.calls <- f:
		e.mail.Store(true)
		e.Wake()
		return true
	default:
		return false
	}
}

// Soon is Call for which there is always room. f runs before any function that is handed
// to Call later. Any goroutine may call it, with any locks held.
func (e *Engine) Soon(f func()) {
	e.soon.mu.Lock()
	e.soon.all = append(e.soon.all, f)
	e.soon.mu.Unlock()
	e.Alert()
}

// callsAtOnce is the most calls that run in one round: packets and operations do not wait
// for longer, however many goroutines call.
const callsAtOnce = 4

// takeCalls runs functions that other goroutines have handed to Soon and Call.
func (e *Engine) takeCalls() int {
	// before the queued calls are taken: those that were left before one of these calls
	// are among them
	n := min(len(e.calls), callsAtOnce)
	e.soon.mu.Lock()
	calls := e.soon.all
	e.soon.all = nil
	e.soon.mu.Unlock()
	for _, f := range calls {
		f()
	}
	for range n {
		(<-e.calls)()
	}
	if len(e.calls) > 0 {
		e.mail.Store(true) // the next round takes the others
	}
	return len(calls) + n
}
