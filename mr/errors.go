// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"errors"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// fiENOKEY is libfabric's FI_ENOKEY, a number that the system's ENOKEY does not have.
const fiENOKEY = 266

// Errors of this package. A returned error wraps one of them, so errors.Is finds it. It
// also matches the errno of libfabric or of the system for it; with ErrMemory, the errno
// that the system gave. Where package xdpfab has an error for the same, it matches that,
// too.
var (
	// These are also xdpfab.ErrArgument.
	ErrSize    = errno.As(errno.Argument, errno.New("impossible size", syscall.EINVAL))
	ErrAccess  = errno.As(errno.Argument, errno.New("unknown access rights", syscall.EINVAL))
	ErrName    = errno.As(errno.Argument, errno.New("unusable name", syscall.EINVAL))
	ErrAuthKey = errno.As(errno.Argument, errno.New("impossible authorization key", errno.KeyRejected))

	// These are also xdpfab.ErrBusy.
	ErrKeyInUse  = errno.As(errno.Busy, errno.NewFabric("key in use", errno.NoKey, fiENOKEY))
	ErrNameInUse = errno.As(errno.Busy, errno.New("name in use", syscall.EEXIST))
	ErrInUse     = errno.As(errno.Busy, errno.New("memory has registered regions", syscall.EBUSY))

	// These are also the errors of the same names of xdpfab.
	ErrClosed      = errno.As(errno.Closed, errno.New("memory is closed", syscall.EBADF))
	ErrOutOfBounds = errno.As(errno.OutOfBounds, errno.New("beyond the end of the region", syscall.EINVAL))
	ErrMisaligned  = errno.As(errno.Misaligned,
		errno.New("address is not a multiple of the word's size", syscall.EINVAL))

	ErrMemory = errors.New("cannot get memory")
)

// failed is fmt.Errorf with the words that all texts of errors begin with, once.
func failed(format string, args ...any) error { return errno.Line("xdpfab: "+format, args...) }
