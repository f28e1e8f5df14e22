// SPDX-License-Identifier: Apache-2.0

package xdpfab

import (
	"errors"
	"syscall"
)

// Numbers of rdma/fi_errno.h that the system does not have.
const (
	fiOpBadState     syscall.Errno = 258 // FI_EOPBADSTATE
	fiErrorAvailable syscall.Errno = 259 // FI_EAVAIL
	fiNoCQ           syscall.Errno = 263 // FI_ENOCQ
)

// errno is an error with a text of its own, for which libfabric has an errno.
type errno struct {
	text string
	code syscall.Errno
}

func reason(code syscall.Errno, text string) error { return &errno{text, code} }

func (e *errno) Error() string { return e.text }

// Is reports whether the target is the errno, or Go's own error in its place.
func (e *errno) Is(target error) bool {
	return target == e.code || target == errors.ErrUnsupported && e.code.Is(target)
}
