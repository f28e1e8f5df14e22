// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore asks which pages of b are in memory; x/sys/unix has no wrapper for it.
func mincore(b, vec []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		uintptr(unsafe.Pointer(&vec[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
