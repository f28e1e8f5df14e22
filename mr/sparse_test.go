// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A hole in a file would cause a SIGBUS if the device were full at the time of
// the first write: so all blocks are allocated once the file is mapped.
func TestFileHolesAreFilled(t *testing.T) {
	const size = 1 << 20
	for _, given := range []int{0, size} {
		path := filepath.Join(t.TempDir(), "sparse")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		m, err := File(path, given)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		if st.Blocks*512 < size {
			t.Errorf("size %d given: %d bytes of %d are allocated", given, st.Blocks*512, size)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
