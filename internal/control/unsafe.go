// SPDX-License-Identifier: Apache-2.0

//go:build linux

package control

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// peerGroups returns the supplementary groups of the program at the other end of a
// socket, as they were when it connected.
func peerGroups(fd int) ([]uint32, error) {
	groups := make([]uint32, 64) // more than most users are in
	for {
		size := uint32(4 * len(groups))
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(unsafe.SliceData(groups))), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4], nil
		case errno == unix.ERANGE && int(size) > 4*len(groups): // it says how much it wants
			groups = make([]uint32, size/4)
		default:
			return nil, fmt.Errorf("groups of the program: %w", errno)
		}
	}
}
