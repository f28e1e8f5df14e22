// SPDX-License-Identifier: Apache-2.0

//go:build linux

package share

import (
	"errors"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/death"
)

// Death returns that of the process at the other end, as it was when it connected. The
// error wraps ErrDied if nothing is left of the process.
func (t *Talk) Death() (*death.Death, error) {
	fd, err := -1, error(nil)
	if bad := t.Control(func(of int) { fd, err = peerPidfd(of) }); bad != nil {
		return nil, bad
	}
	if errors.Is(err, unix.ESRCH) {
		return nil, death.ErrDied
	}
	if err != nil {
		return nil, err
	}
	return death.Of(fd)
}

// peerPidfd returns a pidfd of the process that connected; ESRCH means that nothing is
// left of that process.
func peerPidfd(socket int) (fd int, err error) {
	fd, err = unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	switch err {
	case unix.EINVAL: // as Linux 6.5 to 6.15 says it
		return -1, unix.ESRCH
	case unix.ENOPROTOOPT: // before Linux 6.5
		return pidfdByNumber(socket)
	}
	return fd, err
}

// pidfdByNumber is peerPidfd by the number of the process. Another process can have that
// number only if the one that connected has died: so a death may be noticed late, and
// none is noticed that has not happened. The number is 0 if this process cannot see the
// other one.
func pidfdByNumber(socket int) (fd int, err error) {
	peer, err := unix.GetsockoptUcred(socket, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return -1, err
	}
	return unix.PidfdOpen(int(peer.Pid), 0)
}
