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
// that the system gave.
var (
	ErrSize      = errno.New("impossible size", syscall.EINVAL)
	ErrAccess    = errno.New("unknown access rights", syscall.EINVAL)
	ErrName      = errno.New("unusable name", syscall.EINVAL)
	ErrAuthKey   = errno.New("impossible authorization key", errno.KeyRejected)
	ErrKeyInUse  = errno.NewFabric("key in use", errno.NoKey, fiENOKEY)
	ErrNameInUse = errno.New("name in use", syscall.EEXIST)
	ErrInUse     = errno.New("memory has registered regions", syscall.EBUSY)
	ErrClosed    = errno.New("memory is closed", syscall.EBADF)
	ErrMemory    = errors.New("cannot get memory")

	ErrOutOfBounds = errno.New("beyond the end of the region", syscall.EINVAL)
	ErrMisaligned  = errno.New("address is not a multiple of the word's size", syscall.EINVAL)
)
