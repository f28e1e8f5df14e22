// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The limit of memory is that of the cgroup or of one above it. Within a container the
// cgroup is the top one, and has a limit, too.
func TestMemoryOfGroup(t *testing.T) {
	mount := t.TempDir()
	inner := filepath.Join(mount, "system.slice", "x.service")
	for at, most := range map[string]string{inner: "max", filepath.Dir(inner): "3000", mount: "2000"} {
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, "memory.max"), []byte(most+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		mount, own string
		want       int
	}{
		{mount, "0::/\n", 2000}, {mount, "0::/system.slice/x.service\n", 2000}, {mount, "3:cpu:/\n", math.MaxInt},
		{filepath.Dir(inner), "0::/x.service\n", 3000}, {inner, "0::/\n", math.MaxInt}, {mount, "", math.MaxInt},
	} {
		if got := memoryOfGroup(c.mount, c.own); got != c.want {
			t.Errorf("%q at %s: %d, want %d", c.own, c.mount, got, c.want)
		}
	}
}
