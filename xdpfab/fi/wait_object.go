// SPDX-License-Identifier: Apache-2.0

package fi

import "fmt"

// WaitObject is how callers wait for a queue or counter (enum fi_wait_obj); see fi_cq(3)
// and fi_poll(3).
type WaitObject uint8

const (
	// WaitUnspec lets callers wait with Wait, which makes progress, and sleeps when there
	// has been none for a while (FI_WAIT_UNSPEC).
	WaitUnspec WaitObject = iota
	// WaitNone means that nobody waits: Wait is refused with ErrNotImplemented
	// (FI_WAIT_NONE).
	WaitNone
	// WaitFD is WaitUnspec, and a file descriptor for select, poll and epoll besides
	// (FI_WAIT_FD). See CompletionQueue.FD.
	WaitFD
	// WaitMutexCond is WaitUnspec: callers that wait are parked as on a condition
	// variable, except for one that makes progress for all (FI_WAIT_MUTEX_COND).
	WaitMutexCond
	// WaitYield makes Wait look again and again, yielding to other goroutines in between.
	// It never sleeps (FI_WAIT_YIELD).
	WaitYield
)

var waitNames = []string{WaitUnspec: "unspec", WaitNone: "none", WaitFD: "fd", WaitMutexCond: "mutex_cond",
	WaitYield: "yield"}

// String returns the name, such as "fd", or WaitObject(n) for a value that is none of the
// constants.
func (w WaitObject) String() string { return modeString("WaitObject", waitNames, w) }

// check refuses a value that is none of the constants. what is the object that it is for.
func (w WaitObject) check(what string) error {
	if int(w) < len(waitNames) {
		return nil
	}
	return fmt.Errorf("xdpfab: %s with %v: want WaitUnspec, WaitNone, WaitFD, WaitMutexCond or WaitYield: %w", what, w,
		ErrNotImplemented)
}
