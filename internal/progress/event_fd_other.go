// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package progress

import (
	"runtime"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// EventFD is a file descriptor that is readable while it is raised. There is none but on
// Linux.
type EventFD struct{ FD int }

// OpenEventFD refuses.
func OpenEventFD() (EventFD, error) {
	return EventFD{-1}, errno.Refuse(errno.NotImplemented,
		"a file descriptor to wait for takes Linux, this is %s; want no WaitFD",
		runtime.GOOS)
}

// Raise does nothing, as the methods that follow.
func (e *EventFD) Raise() {}

// Lower does nothing.
func (e *EventFD) Lower() {}

// Close does nothing.
func (e *EventFD) Close() {}

// CloseFD does nothing.
func CloseFD(int) {}
