// SPDX-License-Identifier: Apache-2.0

// Package errno makes the errors that packages export as variables, each with the
// number that the system or libfabric has for the same failure. A caller can ask for
// either with errors.Is.
package errno

import "syscall"

// sentinel is an error that is also its number, which its text does not repeat.
type sentinel struct {
	text   string
	number syscall.Errno
	fabric uint16 // the code of fi_errno(3), which for a few failures is not the system's
}

// Code is implemented by codes of fi_errno(3), which packages above this one define.
type Code interface {
	error
	// Number returns the code, such as 266 for FI_ENOKEY.
	Number() uint16
}

// New returns an error with the given text. errors.Is finds it equal to itself, to the
// number, to the Code of the same number, and to what the number is equal to, such as
// fs.ErrPermission.
func New(text string, number syscall.Errno) error { return &sentinel{text, number, uint16(number)} }

// NewFabric is New for a failure that libfabric gives a code of its own.
func NewFabric(text string, number syscall.Errno, fabric uint16) error {
	return &sentinel{text, number, fabric}
}

func (s *sentinel) Error() string { return s.text }

// Fabric returns the error's code of fi_errno(3).
func (s *sentinel) Fabric() uint16 { return s.fabric }

// Is reports whether the target is the error's code of fi_errno(3).
func (s *sentinel) Is(target error) bool {
	code, is := target.(Code)
	return is && code.Number() == s.fabric
}

// Unwrap returns the number.
func (s *sentinel) Unwrap() error { return s.number }
