// SPDX-License-Identifier: Apache-2.0

package sync

import "errors"

// The errors of this package, besides those of package xdpfab. What fails with an error
// that wraps [xdpfab.ErrOutcomeUnknown] may have happened; what fails with any other has
// not, unless a method says something else.
var (
	// ErrLayout means that there is something else in the memory: another part, one with
	// other parameters, or data.
	ErrLayout = errors.New("another layout")
	// ErrParameter means that a place or a parameter can be of no part.
	ErrParameter = errors.New("no part can have that")
	// ErrLost means that a lock or a permit may be another program's by now: its lease
	// ended before it was renewed, or the home lost its memory.
	ErrLost = errors.New("the lease is lost")
	// ErrReleased is the cause of the context of a lock or a permit after its release.
	ErrReleased = errors.New("released")
	// ErrMemoryLost means that the home has lost what the part had stored.
	ErrMemoryLost = errors.New("the memory is new")
	// ErrClock means that numbers would go back, since the program that marked new memory
	// has a clock that is behind by more than a part allows.
	ErrClock = errors.New("numbers would go back")
)
