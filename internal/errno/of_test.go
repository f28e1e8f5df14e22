// SPDX-License-Identifier: Apache-2.0

package errno

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
)

func TestOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		code uint16
		ok   bool
	}{
		{NewFabric("key in use", NoKey, 266), 266, true},
		{Busy, uint16(syscall.EBUSY &^ Invented), true},
		{fmt.Errorf("open: %w: %w", syscall.ENOENT, Closed), uint16(syscall.EBADF &^ Invented), true},
		{fmt.Errorf("open: %w", syscall.ENOENT), uint16(syscall.ENOENT &^ Invented), true},
		{errors.New("without one"), Other, false},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if code, ok := Of(err); code != c.code || ok != c.ok {
				t.Errorf("%v: %d, %v; want %d, %v", err, code, ok, c.code, c.ok)
			}
		}
	}
}

// What another process has told is its number, and not what the system's own failure is.
func TestTold(t *testing.T) {
	err := Told(uint16(syscall.EACCES &^ Invented))
	if code, ok := Of(err); code != uint16(syscall.EACCES&^Invented) || !ok {
		t.Errorf("%d, %v", code, ok)
	}
	var number syscall.Errno
	if !errors.Is(err, syscall.EACCES) || errors.Is(err, syscall.EPERM) || errors.As(err, &number) {
		t.Errorf("%v", err)
	}
}
