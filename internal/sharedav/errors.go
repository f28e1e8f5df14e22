// SPDX-License-Identifier: Apache-2.0

package sharedav

import (
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Errors of tables. They match the errno as well.
var (
	// ErrDamaged means that the file is not a table, or not a whole one.
	ErrDamaged = errno.New("not a table of addresses", syscall.EPROTO)
	// ErrNone means that there is no table of the name in use.
	ErrNone = errno.New("no address vector of this name is in use", syscall.ENOENT)
	// ErrNoRecord means that the number was never given, or is no longer valid.
	ErrNoRecord = errno.New("no such address", syscall.EADDRNOTAVAIL)
	// ErrReadOnly means that the table was opened for reading.
	ErrReadOnly = errno.New("the address vector was opened for reading", syscall.EACCES)
)
