// SPDX-License-Identifier: Apache-2.0

//go:build linux

package testnet

import (
	"testing"

	"github.com/xdpfab/xdpfab/internal/kernel"
)

// KernelBefore tells whether the running kernel is older than a version. A test
// that skips because the kernel lacks a feature calls it too, so that a skip on a
// kernel that should have the feature is a failure.
func KernelBefore(t testing.TB, major, minor int) bool {
	t.Helper()
	_, v := Kernel(t)
	return !v.AtLeast(kernel.Version{Major: major, Minor: minor})
}

// Kernel returns the running kernel's release, and its version.
func Kernel(t testing.TB) (release string, v kernel.Version) {
	t.Helper()
	release, err := kernel.Release()
	if err != nil {
		t.Fatal(err)
	}
	if v, err = kernel.Parse(release); err != nil {
		t.Fatal(err)
	}
	return release, v
}
