// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A BPF file system has mode 1777 as it is mounted: another user may have made the
// folders on the way to the state first.
func TestFolderOfOthers(t *testing.T) {
	const stranger = 65534
	root := testnet.BPFFS(t)
	parent := filepath.Join(root, "xdpfab")
	if err := errors.Join(os.Chmod(root, 0o777|fs.ModeSticky), os.Mkdir(parent, 0o755), os.Chown(parent, stranger, stranger)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(parent, "eth0")
	for name, open := range map[string]func() error{
		"open":   func() error { _, err := OpenFolder(path); return err },
		"remove": func() error { return RemoveFolder(path) },
	} {
		if err := open(); err == nil || !strings.Contains(err.Error(), "belongs to user 65534") {
			t.Errorf("%s: %v; want an error that names the owner", name, err)
		}
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) != 0 {
		t.Errorf("left there: %v, %v; want nothing", left, err)
	}
	for _, mode := range []fs.FileMode{0o777 | fs.ModeSticky, 0o777, 0o755} {
		own := filepath.Join(root, "own")
		if err := errors.Join(os.MkdirAll(own, 0o700), os.Chmod(own, mode)); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenFolder(own); err == nil || !strings.Contains(err.Error(), "mode 0") {
			t.Errorf("a folder of mode %v: %v; want an error with the mode", mode, err)
		}
	}
}

// The root of a BPF file system belongs to all programs, and names on it have no dots.
func TestFolderNames(t *testing.T) {
	root, err := os.MkdirTemp("", "bpffs")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(root)
	refused := make(chan []error)
	testnet.Require(t)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its mounts
		if err := errors.Join(unix.Unshare(unix.CLONE_NEWNS), unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
			unix.Mount("bpf", root, "bpf", 0, "mode=700")); err != nil {
			refused <- []error{err, err, err}
			return
		}
		refused <- []error{CheckFolder(root + "/"), CheckFolder(root + "/a/eth0.100/b"), CheckFolder(root + "/a/eth0:100/b")}
	}()
	all := <-refused
	for i, want := range []string{"root of a BPF file system, which is for all programs: want a folder below it", "want others, such as "} {
		if err := all[i]; !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if all[2] != nil {
		t.Error(all[2])
	}
}
