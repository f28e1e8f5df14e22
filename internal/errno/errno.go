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
}

// New returns an error with the given text. errors.Is finds it equal to itself, to the
// number, and to what the number is equal to, such as fs.ErrPermission.
func New(text string, number syscall.Errno) error { return &sentinel{text, number} }

func (s *sentinel) Error() string { return s.text }

// Unwrap returns the number.
func (s *sentinel) Unwrap() error { return s.number }
