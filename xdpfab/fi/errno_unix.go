// SPDX-License-Identifier: Apache-2.0

//go:build unix

package fi

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const invented = 0

func errnoName(e syscall.Errno) string { return unix.ErrnoName(e) }
