// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package fi

import (
	"fmt"
	"runtime"
)

// eventFD is a file descriptor that is readable while it is raised. There is none but on
// Linux.
type eventFD struct{ fd int }

func openEventFD() (eventFD, error) {
	return eventFD{-1}, fmt.Errorf("a file descriptor to wait for takes Linux, this is %s; want no WaitFD: %w",
		runtime.GOOS, ErrNotImplemented)
}

func (e *eventFD) raise() {}

func (e *eventFD) lower() {}

func (e *eventFD) close() {}

func closeFD(int) {}
