// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that cannot be memory says what to do.
func TestFileRemedies(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"no such file or directory; make its folder, or name another file":                         second(File(dir+"/none/f", 64)),
		"no such file or directory; name a file that is there, or give the size of one to be made": second(File(dir+"/none", 0)),
		"is a directory; name a file in it":                                                        second(File(dir, 64)),
		"not a directory; name a file in a folder":                                                 second(File(plain+"/f", 64)),
		"/dev/null is not a regular file; name a regular file on a disk":                           second(File("/dev/null", 64)),
		"this is the size of " + plain + "; give it a size, which makes the file as large":         second(File(plain, 0)),
		"name a file on another file system, or mount this one to be written":                      errors.New(toOpen(unix.EROFS, true)),
		"check the space on the device, or name a file on another one":                             errors.New(toOpen(unix.ENOSPC, true)),
		"must be able to read and write it":                                                        errors.New(toOpen(unix.EACCES, true)),
	} {
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want it to end with %q", err, want)
		}
	}
}
