// SPDX-License-Identifier: Apache-2.0

//go:build unix

package errno

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Invented is the bit of numbers that Go has made for a system that lacks them: none.
const Invented = 0

// Name returns the name of an errno, such as "EAGAIN".
func Name(e syscall.Errno) string { return unix.ErrnoName(e) }
