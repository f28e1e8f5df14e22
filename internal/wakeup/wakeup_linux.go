// SPDX-License-Identifier: Apache-2.0

package wakeup

import (
	"encoding/binary"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Event is an eventfd, and whether it is set. Any goroutine may call Set; all other
// methods are for the one thread that sleeps.
type Event struct {
	fd      int         // -1 once closed
	mu      sync.Mutex  // guards the descriptor's life against Set
	set     atomic.Bool // set by Set, lowered by Clear
	drained [8]byte     // read from the descriptor; never used
}

// New makes an event.
func New() (*Event, error) {
	fd, err := unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd", err)
	}
	return &Event{fd: fd}, nil
}

// Poll is what makes ppoll(2) return once the event is set.
func (e *Event) Poll() unix.PollFd { return unix.PollFd{Fd: int32(e.fd), Events: unix.POLLIN} }

// IsSet reports whether the event is set.
func (e *Event) IsSet() bool { return e.set.Load() }

// Set ends the current or the next sleep. It may be called after Close, and then does
// nothing. It costs a system call only when the event is not set yet.
func (e *Event) Set() {
	if e.set.Swap(true) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.fd >= 0 {
		_, _ = unix.Write(e.fd, one)
	}
}

// Clear makes the event one that is not set, once ppoll has said that it is. The
// descriptor is emptied before the flag is lowered: in the other order the write of a Set
// in between would be lost, while its flag kept all later ones from writing.
func (e *Event) Clear() {
	_, _ = unix.Read(e.fd, e.drained[:])
	e.set.Store(false)
}

// Close closes the descriptor. A nil event has none.
func (e *Event) Close() error {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	e.set.Store(true) // later calls of Set return at once
	fd := e.fd
	e.fd = -1
	e.mu.Unlock()
	if fd < 0 {
		return nil
	}
	return unix.Close(fd)
}

// one is the value that is written to the descriptor.
var one = binary.NativeEndian.AppendUint64(nil, 1)
