// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"syscall"

	"github.com/xdpfab/xdpfab/internal/errno"
)

// Errors returned by this package match one of these with errors.Is. Where the kernel
// said no, its errno (a syscall.Errno) matches as well, and the text goes on with what to
// do about it. ErrConfig matches EINVAL too, ErrClosed EBADF, ErrInUse EBUSY.
var (
	ErrConfig        = errno.New("bad configuration", syscall.EINVAL)
	ErrClosed        = errno.New("closed", syscall.EBADF)
	ErrInUse         = errno.New("in use", syscall.EBUSY)
	ErrPermission    = errors.New("missing privilege")
	ErrMemlock       = errors.New("locked-memory limit exceeded")
	ErrUnsupported   = errors.New("not supported by this kernel")
	ErrZeroCopy      = errors.New("zero-copy not supported")
	ErrNoInterface   = errno.NoInterface
	ErrNoQueue       = errors.New("no such queue")
	ErrQueueBusy     = errors.New("queue is taken by another AF_XDP socket")
	ErrInterfaceDown = errors.New("interface is down")
	ErrNoBuffers     = errors.New("out of buffers")
	ErrUnbound       = errors.New("socket is not bound: the interface is gone")
)
