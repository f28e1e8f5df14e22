// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package death tells of the end of a process that is no child of this one.
package death

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Death tells of the end of a process. A connection does not: a child of the process may
// have it, too.
type Death struct{ f *os.File }

// ErrDied means that a process has ended before it could be watched.
var ErrDied = errors.New("the process has ended")

// Of is the Death of the process of a pidfd, which is the Death's from then on.
func Of(pidfd int) (*Death, error) {
	if err := unix.SetNonblock(pidfd, true); err != nil {
		_ = unix.Close(pidfd)
		return nil, err
	}
	return &Death{os.NewFile(uintptr(pidfd), "pidfd")}, nil
}

// Wait waits for the end of the process, for so long at most, or for ever if that is 0.
// It returns nil if the process has ended, and an error if it has not, or Close was
// called.
func (x *Death) Wait(limit time.Duration) error {
	if limit > 0 {
		if err := x.f.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return err
		}
	}
	raw, err := x.f.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0
	})
}

// Close ends Wait.
func (x *Death) Close() error { return x.f.Close() }
