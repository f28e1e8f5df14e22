// SPDX-License-Identifier: Apache-2.0

package errno

import (
	"errors"
	"syscall"
)

// Other is the code of fi_errno(3) for a failure that has no other one (FI_EOTHER).
const Other = 256

// Of returns the code of fi_errno(3) that an error has, or Other; then ok is false.
func Of(err error) (code uint16, ok bool) {
	var (
		fabric Code
		lower  interface{ Fabric() uint16 } // of this package
		system syscall.Errno
	)
	switch {
	case errors.As(err, &fabric):
		return fabric.Number(), true
	case errors.As(err, &lower):
		return lower.Fabric(), true
	case errors.As(err, &system):
		return uint16(system &^ Invented), true
	}
	return Other, false
}

// Told returns an error that another process has told the code of: it equals what the
// code and the system's number are equal to. Its text is for a caller to replace.
func Told(code uint16) error {
	return cause("error of another process", syscall.Errno(code)|Invented)
}
