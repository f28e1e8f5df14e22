// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// EventFD is a file descriptor that is readable while it is raised. A lock of its owner
// guards it.
type EventFD struct {
	FD     int // -1 for none
	raised bool
}

// OpenEventFD returns a descriptor that is not raised.
func OpenEventFD() (EventFD, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return EventFD{FD: -1}, fmt.Errorf("eventfd: %w", err)
	}
	return EventFD{FD: fd}, nil
}

// one is what a raised descriptor holds.
var one = [8]byte{1} // on any byte order it is not 0

// Raise makes the descriptor readable, and Lower undoes that. A write to an eventfd that
// holds 0 always has room, and a read from one that holds more has something to read.
func (e *EventFD) Raise() {
	if e.FD >= 0 && !e.raised {
		e.raised = true
		_, _ = unix.Write(e.FD, one[:])
	}
}

// Lower undoes Raise.
func (e *EventFD) Lower() {
	if e.raised {
		e.raised = false
		var b [8]byte
		_, _ = unix.Read(e.FD, b[:])
	}
}

// Close closes the descriptor, if there is one.
func (e *EventFD) Close() {
	if e.FD >= 0 {
		CloseFD(e.FD)
	}
	e.FD, e.raised = -1, false
}

// CloseFD closes a descriptor whose EventFD is gone.
func CloseFD(fd int) { _ = unix.Close(fd) }
