// SPDX-License-Identifier: Apache-2.0

package mr

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Shared takes memory whose size and access stay: what the other process does to the
// descriptor afterwards changes nothing for a third one that maps it.
func TestSharedStays(t *testing.T) {
	seal := func(fd, seals int) error {
		_, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals)
		return err
	}
	made := func(seals int) int {
		fd, err := unix.MemfdCreate("seals", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err = errors.Join(err, unix.Ftruncate(fd, 8192), seal(fd, seals)); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(fd) })
		return fd
	}
	for name, seals := range map[string]int{
		"none": 0, "shrink": unix.F_SEAL_SHRINK, "grow": unix.F_SEAL_GROW, "write": fixed | unix.F_SEAL_WRITE,
		"future write": fixed | unix.F_SEAL_FUTURE_WRITE, "future write, sealed": fixed | unix.F_SEAL_FUTURE_WRITE | unix.F_SEAL_SEAL,
	} {
		if m, err := Shared(made(seals), 1<<20); !errors.Is(err, ErrMemory) {
			t.Errorf("seals %s: %v, want ErrMemory", name, err)
			if err == nil {
				_ = m.Close()
			}
		}
	}
	for name, fd := range map[string]int{"as Memfd makes it": made(fixed), "sealed already": made(fixed | unix.F_SEAL_SEAL)} {
		m, err := Shared(fd, 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for what, err := range map[string]error{"written no longer": seal(fd, unix.F_SEAL_FUTURE_WRITE), "grown": unix.Ftruncate(fd, 1<<30)} {
			if !errors.Is(err, unix.EPERM) {
				t.Errorf("%s: could be %s: %v", name, what, err)
			}
		}
		third, err := Shared(m.FD(), 8192)
		if err == nil {
			err = third.Close()
		}
		if err = errors.Join(err, m.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that cannot be had is not left behind, unless it was there before.
func TestFileLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	fresh, old := filepath.Join(dir, "fresh"), filepath.Join(dir, "old")
	if err := os.WriteFile(old, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	const most = 1 << 46 // more than any disk
	for _, path := range []string{fresh, old} {
		if m, err := File(path, most); err == nil {
			_ = m.Close()
			t.Skip("the file system has room for everything")
		}
	}
	if _, err := os.Lstat(fresh); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the file that was made: %v", err)
	}
	if text, err := os.ReadFile(old); err != nil || string(text) != "x" {
		t.Errorf("the file that was there: %q, %v", text, err)
	}
}
