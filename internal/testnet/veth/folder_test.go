// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// onFreshMachine runs f on a thread with a mount namespace of its own, in which /run is
// empty, as it is on a machine without any namespace. Nothing that f mounts reaches the
// machine, and the thread ends with f.
func onFreshMachine(t *testing.T, f func() error) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates mount namespaces")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the runtime ends the thread
		err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWNET)
		if err == nil {
			err = errors.Join(unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""),
				unix.Mount("tmpfs", "/run", "tmpfs", 0, ""))
		}
		if err == nil {
			err = f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// named makes a namespace with a name, as create does, on the present thread.
func named(name string) error {
	h, err := netns.NewNamed(name)
	if err != nil {
		return err
	}
	return h.Close()
}

// ip runs ip(8) in the namespaces of the present thread.
func ip(args ...string) error {
	out, err := exec.Command("ip", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// A name can be removed after the first `ip netns add` of the machine.
func TestNamesBeforeTheFirstOfIP(t *testing.T) {
	onFreshMachine(t, func() error {
		err := errors.Join(prepareFolder(), named("xf1-1-a"), ip("netns", "add", "other"), ip("netns", "exec", "xf1-1-a", "true"),
			unname("xf1-1-a"), ip("netns", "delete", "other"))
		left, _ := filepath.Glob(filepath.Join(folder, "*"))
		if len(left) > 0 {
			err = errors.Join(err, fmt.Errorf("%v are left", left))
		}
		return err
	})
}

// Names that are there already stay in sight, and the folder as it is.
func TestNamesOfOthersStay(t *testing.T) {
	onFreshMachine(t, func() error {
		return errors.Join(os.MkdirAll(folder, 0o755), named("other"), prepareFolder(),
			ip("netns", "exec", "other", "true"), unname("other"))
	})
}

// A folder that is a mount already gets no second one.
func TestFolderOnce(t *testing.T) {
	onFreshMachine(t, func() error {
		err := errors.Join(ip("netns", "add", "other"), unname("other"))
		mounts, _ := os.ReadFile("/proc/thread-self/mountinfo")
		err = errors.Join(err, prepareFolder(), prepareFolder())
		if now, _ := os.ReadFile("/proc/thread-self/mountinfo"); string(now) != string(mounts) {
			err = errors.Join(err, fmt.Errorf("the mounts were\n%sand are\n%s", mounts, now))
		}
		return err
	})
}
