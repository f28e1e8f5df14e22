// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"testing"

	"golang.org/x/sys/unix"
)

// BPFFS mounts a BPF file system of its own until the test ends, and returns its folder.
// What is pinned there ends with it.
func BPFFS(t testing.TB) string {
	t.Helper()
	Require(t)
	at := t.TempDir()
	if err := unix.Mount("bpf", at, "bpf", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return at
}
