// SPDX-License-Identifier: Apache-2.0

package mr

import "errors"

// Errors of this package; what is returned wraps one of them, and the system's error where there is one.
var (
	ErrSize      = errors.New("mr: impossible size")
	ErrAccess    = errors.New("mr: unknown access rights")
	ErrName      = errors.New("mr: unusable name")
	ErrKeyInUse  = errors.New("mr: key in use")
	ErrNameInUse = errors.New("mr: name in use")
	ErrInUse     = errors.New("mr: memory has registered regions")
	ErrClosed    = errors.New("mr: memory is closed")
	ErrMemory    = errors.New("mr: cannot get memory")

	ErrOutOfBounds = errors.New("mr: beyond the end of the region")
	ErrMisaligned  = errors.New("mr: address is not a multiple of the word's size")
)
