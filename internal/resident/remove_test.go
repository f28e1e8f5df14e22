// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// Root removes what a daemon with a user of its own left, and nothing else that this user
// has put there links to.
func TestRemoveOfAnotherUser(t *testing.T) {
	const stranger = 65534
	root := testnet.BPFFS(t)
	foreign := filepath.Join(root, "foreign", "kept")
	path := filepath.Join(root, "xdpfab", "eth0")
	state := filepath.Join(path, version)
	err := errors.Join(os.MkdirAll(foreign, 0o700), os.MkdirAll(state, 0o700),
		os.Symlink(filepath.Dir(foreign), filepath.Join(path, "v0")))
	for _, at := range []string{filepath.Dir(path), path, state} {
		err = errors.Join(err, os.Chown(at, stranger, stranger))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Dir(path), stranger-1, stranger); err != nil {
		t.Fatal(err)
	}
	if err := RemoveFolder(path); err == nil || !strings.Contains(err.Error(), "belongs to user 65533") {
		t.Errorf("removed what a third user can replace: %v", err)
	}
	if err := os.Chown(filepath.Dir(path), stranger, stranger); err != nil {
		t.Fatal(err)
	}
	if err := RemoveFolder(filepath.Dir(path)); !errors.Is(err, ErrConfig) {
		t.Errorf("a folder with something else: %v", err)
	}
	held, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := RemoveFolder(path); !errors.Is(err, ErrOwned) {
		t.Errorf("removed while it is in use: %v", err)
	}
	_ = held.Close()
	if err := RemoveFolder(path); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a link to what only root may look at: %v", err)
	}
	if err := RemoveFolder(path); err != nil { // the link is gone
		t.Error(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("what the folder linked to is gone: %v", err)
	}
}

// What root does with a user's rights cannot pass over permissions, nor make use of
// root's groups, and root has its own rights again afterwards.
func TestWithRightsOf(t *testing.T) {
	const stranger, extra = 65534, 4711
	had, err := unix.Getgroups()
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Setgroups([]int{extra}); err != nil { // of all threads
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setgroups(had) })
	dir := t.TempDir()
	for up := dir; up != os.TempDir(); up = filepath.Dir(up) {
		if err := os.Chmod(up, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name     string
		uid, gid int
		mode     os.FileMode
		want     bool // a stranger may read it
	}{
		{"of root alone", 0, 0, 0o600, false},
		{"of root's group", 0, 0, 0o640, false},
		{"of another group of root's", 0, extra, 0o640, false},
		{"of the user", stranger, 0, 0o600, true},
		{"of all", 0, 0, 0o604, true},
	} {
		file := filepath.Join(dir, c.name)
		if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chown(file, c.uid, c.gid), os.Chmod(file, c.mode)); err != nil {
			t.Fatal(err)
		}
		read := func() error { _, err := os.ReadFile(file); return err }
		if err := withRightsOf(stranger, read); (err == nil) != c.want || !c.want && !errors.Is(err, fs.ErrPermission) {
			t.Errorf("%s: read as another user: %v", c.name, err)
		}
		if err := withRightsOf(os.Geteuid(), read); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := read(); err != nil {
			t.Errorf("%s: afterwards: %v", c.name, err)
		}
	}
}
