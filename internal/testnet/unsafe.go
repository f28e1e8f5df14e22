// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// install has a filter of system calls hold for all threads of this process, and for what
// it executes.
func install(filter []unix.SockFilter) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, err := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&program)))
	if err != 0 {
		return fmt.Errorf("seccomp: %w", err)
	}
	return nil
}
