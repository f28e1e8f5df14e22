// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// KernelBefore tells whether the running kernel is older than a version. A test
// that skips because of what a kernel lacks asks it too, so that a skip on a kernel
// that should have it is a failure.
func KernelBefore(t testing.TB, major, minor int) bool {
	t.Helper()
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(u.Release[:])
	var a, b int
	if _, err := fmt.Sscanf(release, "%d.%d", &a, &b); err != nil {
		t.Fatalf("kernel release %q: %v", release, err)
	}
	return a < major || a == major && b < minor
}
