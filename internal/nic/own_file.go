// SPDX-License-Identifier: Apache-2.0

//go:build linux

package nic

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// A file says what a NIC had before a change, for the next process if this one is killed.

// mostState bounds the length of a file, bytes.
const mostState = 1 << 20

var errNotOurs = errors.New("somebody else's")

// readOwn reads a file that this user wrote, and nobody else could write.
func readOwn(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var s unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if s.Mode&unix.S_IFMT != unix.S_IFREG || int(s.Uid) != os.Geteuid() || s.Mode&0o022 != 0 {
		return nil, fmt.Errorf("%s: %w: owner %d, mode %o: want a file of user %d that no other can write", path,
			errNotOurs, s.Uid, s.Mode, os.Geteuid())
	}
	return io.ReadAll(io.LimitReader(f, mostState))
}

// writeOwn writes the file in one step: there is never half of it. It is not synced, for
// it is for the next process and not for the next boot, after which the NIC has its own
// settings.
func writeOwn(path string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // through nobody's link
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(next))
	}
	return os.Rename(next, path)
}
