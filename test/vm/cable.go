// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"os"

	"golang.org/x/sys/unix"
)

// NewCable is an Ethernet cable for two machines, as Config.Cable takes its ends:
// the interface of each receives what the other's sends. It uses no network of the
// host, needs no port and no privilege, and ends with the machines.
func NewCable() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "cable"), os.NewFile(uintptr(fds[1]), "cable"), nil
}
