// SPDX-License-Identifier: Apache-2.0

package fi

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// eventFD is a file descriptor that is readable while it is raised. A lock of its owner
// guards it.
type eventFD struct {
	fd     int // -1 for none
	raised bool
}

// openEventFD returns a descriptor that is not raised.
func openEventFD() (eventFD, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return eventFD{fd: -1}, fmt.Errorf("eventfd: %w", err)
	}
	return eventFD{fd: fd}, nil
}

// one is what a raised descriptor holds.
var one = [8]byte{1} // on any byte order it is not 0

// raise makes the descriptor readable, and lower undoes that. A write to an eventfd that
// holds 0 always has room, and a read from one that holds more has something to read.
func (e *eventFD) raise() {
	if e.fd >= 0 && !e.raised {
		e.raised = true
		_, _ = unix.Write(e.fd, one[:])
	}
}

func (e *eventFD) lower() {
	if e.raised {
		e.raised = false
		var b [8]byte
		_, _ = unix.Read(e.fd, b[:])
	}
}

func (e *eventFD) close() {
	if e.fd >= 0 {
		closeFD(e.fd)
	}
	e.fd, e.raised = -1, false
}

func closeFD(fd int) { _ = unix.Close(fd) }
