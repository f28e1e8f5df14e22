// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Doorbell is one end of a pair by which either side wakes the other. It is a pair of
// sockets and no eventfd: whether a write to an eventfd blocks is a flag that both sides
// can change, so that a guest could hold up the host's poller; MSG_DONTWAIT is the
// sender's own.
type Doorbell struct{ fd int }

// NewDoorbells returns the two ends of a pair. Each is closed by its side.
func NewDoorbells() (own, other *Doorbell, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	return &Doorbell{fds[0]}, &Doorbell{fds[1]}, nil
}

// DoorbellOf is the end that came as a file descriptor.
func DoorbellOf(fd int) *Doorbell { return &Doorbell{fd} }

// FD returns the file descriptor, which stays the doorbell's.
func (b *Doorbell) FD() int { return b.fd }

var stroke = []byte{1}

// Ring wakes the other side. If it has been woken often enough, nothing happens.
func (b *Doorbell) Ring() { _ = unix.Send(b.fd, stroke, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL) }

// Clear takes what has been rung.
func (b *Doorbell) Clear() {
	var buf [8]byte
	for {
		n, _, err := unix.Recvfrom(b.fd, buf[:], unix.MSG_DONTWAIT)
		if n <= 0 || err != nil {
			return
		}
	}
}

// Wait waits until the other side rings, a wake-up comes, or the time has passed.
func (b *Doorbell) Wait(wake int, limit time.Duration) {
	fds := []unix.PollFd{{Fd: int32(b.fd), Events: unix.POLLIN}, {Fd: int32(wake), Events: unix.POLLIN}}
	ts := unix.NsecToTimespec(max(limit.Nanoseconds(), 0))
	_, _ = unix.Ppoll(fds, &ts, nil) // an interrupted wait may end early
}

// File returns the doorbell as a file whose Read waits for a ring, for a goroutine. The
// doorbell is the file's from then on.
func (b *Doorbell) File() *os.File { return os.NewFile(uintptr(b.fd), "doorbell") }

// Close closes this end.
func (b *Doorbell) Close() error { return unix.Close(b.fd) }
