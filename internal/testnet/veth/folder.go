// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// folder holds the names of network namespaces, for `ip netns` and for us.
const folder = "/run/netns"

// prepareFolder makes the folder a mount of its own, as the first `ip netns add` of a
// machine does. If that came after our names, it would hide their mounts, and nobody
// could remove the files below those: "device or resource busy". A folder that is a mount
// stays as it is. So does one with names in it, which a mount would hide from their
// owners.
//
// The lock is the one that ip(8) takes, so that no name comes in between.
func prepareFolder() error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	dir, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer dir.Close() // gives the lock back
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", folder, err)
	}
	names, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil || slices.ContainsFunc(append(names, folder), mounted) {
		return err
	}
	err = errors.Join(unix.Mount(folder, folder, "", unix.MS_BIND, ""),
		unix.Mount("", folder, "", unix.MS_SHARED, ""))
	if err != nil {
		return fmt.Errorf("make %s a shared mount: %w", folder, err)
	}
	return nil
}

// mounted reports whether a mount begins at a path.
func mounted(path string) bool {
	var st unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_TYPE, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
