// SPDX-License-Identifier: Apache-2.0

// Package errno makes the errors that packages export as variables, each with the number
// that the system or libfabric has for the same failure. A caller can ask for either with
// errors.Is.
package errno

import (
	"errors"
	"fmt"
	"syscall"
)

// numbered is an error with the number of the same failure, which its text does not
// repeat.
type numbered struct {
	text   string
	number syscall.Errno
	fabric uint16 // the code of fi_errno(3), which for a few failures is not the system's
	kind   error  // that it is one of, or nil
}

// sentinel is an error that is also its number.
type sentinel struct{ numbered }

// Code is implemented by codes of fi_errno(3), which packages above this one define.
type Code interface {
	error
	// Number returns the code, such as 266 for FI_ENOKEY.
	Number() uint16
}

// New returns an error with the given text. errors.Is finds it equal to itself, to the
// number, to the Code of the same number, and to what the number is equal to, such as
// fs.ErrPermission.
func New(text string, number syscall.Errno) error { return NewFabric(text, number, uint16(number)) }

// NewFabric is New for a failure that libfabric gives a code of its own.
func NewFabric(text string, number syscall.Errno, fabric uint16) error {
	return &sentinel{numbered{text, number, fabric, nil}}
}

// As returns an error of New or NewFabric that is of a kind as well, which errors.Is
// finds: a program need not know in which package a call failed.
func As(kind, of error) error {
	of.(*sentinel).kind = kind
	return of
}

// cause is New for a failure that another process may have told: it equals the number and
// the Code, but not what the system's own failure equals. A right that a region does not
// grant is no fs.ErrPermission, which asks for a privilege of this process.
func cause(text string, number syscall.Errno) error {
	return &numbered{text, number, uint16(number), nil}
}

func (s *numbered) Error() string { return s.text }

// Fabric returns the error's code of fi_errno(3).
func (s *numbered) Fabric() uint16 { return s.fabric }

// Is reports whether the target is the error's number, its code of fi_errno(3), its kind,
// or Go's own error for something that is not supported.
func (s *numbered) Is(target error) bool {
	if code, is := target.(Code); is {
		return code.Number() == s.fabric
	}
	return target == s.number || s.kind != nil && target == s.kind ||
		target == errors.ErrUnsupported && s.number.Is(target)
}

// Unwrap returns the number.
func (s *sentinel) Unwrap() error { return s.number }

// refusal is an error whose text is whole without that of its kind.
type refusal struct {
	error
	kind error
}

// Refuse returns an error that says by itself what was wrong, what was expected and the
// remedy. errors.Is finds the kind, whose text does not follow: it could only repeat the
// text, or contradict it.
func Refuse(kind error, format string, args ...any) error {
	return &refusal{fmt.Errorf(format, args...), kind}
}

// Also returns an error that is of one more kind: errors.Is finds it. The text stays.
func Also(err, kind error) error {
	if err == nil || errors.Is(err, kind) {
		return err
	}
	return &refusal{err, kind}
}

// Unwrap returns what the text wraps, and the kind.
func (r *refusal) Unwrap() []error { return []error{r.error, r.kind} }
