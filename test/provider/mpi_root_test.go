// SPDX-License-Identifier: Apache-2.0

//go:build linux

package provider

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// stubs take the place of the tools of scripts/mpi: debootstrap makes half a tree and
// ends if there is a file named fail, and nothing runs in the tree.
var stubs = map[string]string{
	"debootstrap": `mkdir -p "$3/etc/dpkg/dpkg.cfg.d" || exit 1
[ ! -e "$STUBS/fail" ] || { touch "$3/half"; exit 1; }
echo made >>"$STUBS/log"`,
	"unshare": `shift; [ "$1" != debootstrap ] || exec "$@"`,
	"id":      "echo 0",
}

// A call of scripts/mpi that was interrupted leaves nothing that the next one takes for
// whole, and the third has nothing to do.
func TestMPIRoot(t *testing.T) {
	tools, dir := t.TempDir(), filepath.Join(t.TempDir(), "mpi")
	for name, text := range stubs {
		if err := os.WriteFile(filepath.Join(tools, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	call := func() error {
		c := exec.Command("../../scripts/mpi", dir, "openmpi")
		c.Env = []string{"PATH=" + tools + ":/usr/bin:/bin", "STUBS=" + tools}
		out, err := c.CombinedOutput()
		t.Logf("%s", out)
		return err
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	}
	if err := os.WriteFile(filepath.Join(tools, "fail"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := call(); err == nil || there("root") || there("based") || there("openmpi") {
		t.Fatalf("%v: half a tree is taken for whole", err)
	}
	if err := os.Remove(filepath.Join(tools, "fail")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := call(); err != nil || !there("openmpi") || !there("root/etc") || there("root/half") {
			t.Fatalf("%v: the tree is not whole", err)
		}
	}
	if log, _ := os.ReadFile(filepath.Join(tools, "log")); strings.Count(string(log), "made") != 1 {
		t.Errorf("the tree was made %d times, want once", strings.Count(string(log), "made"))
	}
}
