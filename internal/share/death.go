// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/death"
)

// Death returns that of the process at the other end, as it was when it connected. The
// error wraps ErrDied if it has ended already.
func (t *Talk) Death() (*death.Death, error) {
	fd, err := -1, error(nil)
	bad := t.Control(func(of int) {
		// before Linux 6.5
		if fd, err = unix.GetsockoptInt(of, unix.SOL_SOCKET, unix.SO_PEERPIDFD); err == unix.ENOPROTOOPT {
			var c *unix.Ucred
			if c, err = unix.GetsockoptUcred(of, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
				fd, err = unix.PidfdOpen(int(c.Pid), 0) // if another one has its number, it has ended
			}
		}
	})
	if err = errors.Join(bad, err); errors.Is(err, unix.ESRCH) {
		return nil, death.ErrDied
	}
	if err != nil {
		return nil, err
	}
	return death.Of(fd)
}
