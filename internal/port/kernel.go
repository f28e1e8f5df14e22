// SPDX-License-Identifier: Apache-2.0

//go:build linux

package port

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/xsk"
)

// The oldest kernel that the project is tested with. A few older ones have all the
// system calls, and nobody knows what else is different.
const (
	leastMajor = 5
	leastMinor = 10
)

// supported checks the running kernel.
func supported() error {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return fmt.Errorf("port: uname: %w", err)
	}
	return supports(unix.ByteSliceToString(u.Release[:]))
}

// supports checks a kernel by its release. One that it cannot read gets no blame.
func supports(release string) error {
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n != 2 {
		return nil
	}
	if major > leastMajor || major == leastMajor && minor >= leastMinor {
		return nil
	}
	return fmt.Errorf("port: Linux %s is too old, want %d.%d or newer: %w", release, leastMajor, leastMinor, xsk.ErrUnsupported)
}
