// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An image for arm64 is known by its magic, and its release by its banner.
func TestImageForARM64(t *testing.T) {
	b := make([]byte, 8192)
	copy(b[magicARM64:], "ARMd")
	cut := write(t, "boot/vmlinuz", string(b))
	_, err := OpenKernel(cut, "")
	fails(t, err, ErrKernel, "does not say its version")

	copy(b[5000:], "Linux version 6.12.1-arm64 (builder) #1\x00")
	path := write(t, "boot/vmlinuz", string(b))
	modules := filepath.Join(filepath.Dir(path), "../lib/modules/6.12.1-arm64")
	if err := os.MkdirAll(modules+"/kernel", 0o755); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKernel(path, "")
	if err != nil || k.Release != "6.12.1-arm64" || k.Arch != ARM64 {
		t.Fatalf("%+v, %v", k, err)
	}
	c, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Kernel(path, AMD64, "", false)
	fails(t, err, ErrKernel, "is for arm64", "-arch arm64")
}

// The guest gets what its programs need from the sysroot, and nothing of the host's.
func TestSysroot(t *testing.T) {
	s := &Sysroot{dir: t.TempDir(), arch: ARM64}
	_, err := s.find("ip")
	fails(t, err, ErrHost, "no program ip for arm64", "iproute2")

	put := func(at, from string) {
		b, err := os.ReadFile(from)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(s.dir, at)), 0o755)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, at), b, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	// The host's programs stand for others.
	program, err := find("ip")
	if err != nil {
		t.Skip(err)
	}
	put("usr/bin/ip", program)
	libraries, err := librariesOf(program)
	if err != nil {
		t.Fatal(err)
	}
	wanted := 0
	for at, from := range libraries {
		if !strings.Contains(at, "/ld-") { // the linker is not read
			put("usr/lib/"+ARM64.triplet+"/"+filepath.Base(at), from)
			wanted++
		}
	}
	path, err := s.find("ip")
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.libraries(path)
	if err != nil || len(found) != wanted+1 { // and the linker
		t.Errorf("%d libraries, %v; want %d and the linker: %v", len(found), err, wanted, found)
	}
	for at, from := range found {
		if !strings.HasPrefix(from, s.dir) {
			t.Errorf("%s is the host's %s", at, from)
		}
	}
}
