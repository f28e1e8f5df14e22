// SPDX-License-Identifier: Apache-2.0

package errno

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

func TestNew(t *testing.T) {
	one, other := New("no right", syscall.EACCES), New("no right", syscall.EACCES)
	err := fmt.Errorf("p: %w; grant it", one)
	if err.Error() != "p: no right; grant it" {
		t.Errorf("text %q", err)
	}
	for _, is := range []error{one, syscall.EACCES, fs.ErrPermission} {
		if !errors.Is(err, is) {
			t.Errorf("%v is not %v", err, is)
		}
	}
	for _, not := range []error{other, syscall.EPERM, fs.ErrNotExist} {
		if errors.Is(err, not) {
			t.Errorf("%v is %v", err, not)
		}
	}
}

// A cause that another process may have told is its number alone: fs.ErrPermission would
// say that this process lacks a privilege.
func TestCause(t *testing.T) {
	err := fmt.Errorf("p: %w", Access)
	if !errors.Is(err, Access) || !errors.Is(err, syscall.EACCES) || !errors.Is(NotImplemented, errors.ErrUnsupported) {
		t.Errorf("%v is not its number", err)
	}
	var number syscall.Errno
	if errors.Is(err, fs.ErrPermission) || errors.Is(Denied, fs.ErrPermission) || errors.As(PeerSilent, &number) {
		t.Errorf("%v, %v or %v is what its number is", err, Denied, PeerSilent)
	}
}
