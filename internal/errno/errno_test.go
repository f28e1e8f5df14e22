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
