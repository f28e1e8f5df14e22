// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sharedav

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// The locks are on bytes of the file, whose contents they do not touch.
const (
	usersByte   = 0 // shared by all users; exclusive while a user begins or removes the table
	writersByte = 1 // exclusive to a writer
)

// lock asks for a lock (unix.F_RDLCK, F_WRLCK or F_UNLCK) on a byte, in place of the one
// that the table has there. It does not wait; held means that others are in the way.
func (t *Table) lock(kind int16, at int64) (held bool, err error) {
	err = unix.FcntlFlock(t.f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind, Start: at, Len: 1})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return true, nil
	}
	return false, err
}

// wait is lock that waits for others.
func (t *Table) wait(ctx context.Context, kind int16, at int64) error {
	for {
		held, err := t.lock(kind, at)
		if err != nil || !held {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(time.Millisecond):
		}
	}
}
