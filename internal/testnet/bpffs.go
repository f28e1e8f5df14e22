// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// BPFFS makes a BPF file system of the test's own, and returns a folder of it. What is
// pinned there ends with the test, or with this process, however that ends: the file
// system is mounted nowhere, and has but a descriptor.
func BPFFS(t testing.TB) string {
	t.Helper()
	Require(t)
	fd, err := detachedBPFFS()
	if err != nil {
		t.Fatalf("a BPF file system: %v", err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	at := fmt.Sprintf("/proc/%d/fd/%d/test", os.Getpid(), fd) // also for other processes
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	return at
}

// detachedBPFFS returns a descriptor of the root.
func detachedBPFFS() (int, error) {
	fs, err := unix.Fsopen("bpf", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	root := -1
	if err = unix.FsconfigCreate(fs); err == nil {
		root, err = unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	}
	return root, errors.Join(err, unix.Close(fs))
}
