// SPDX-License-Identifier: Apache-2.0

//go:build linux

package resident

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The committed object is that of the committed source: generated in another place, by
// the same compiler, it is the same.
func TestGenerated(t *testing.T) {
	if testing.Short() {
		t.Skip("builds bpf2go; run without -short")
	}
	out, err := exec.Command("clang-14", "--version").Output()
	if err != nil || !strings.Contains(string(out), "14.0.6") {
		t.Skipf("needs clang-14 14.0.6, which made the object: %v %s", err, out)
	}
	root := filepath.Join(t.TempDir(), "elsewhere")
	here := filepath.Join(root, "internal", "resident")
	for _, pattern := range []string{"../../go.mod", "../../go.sum", "../../tools/go.*", "../../bpf/headers/*.h", "doc.go", "executor.c", "headers/*.h"} {
		copyAll(t, pattern, here)
	}
	cmd := exec.Command("go", "generate", ".")
	cmd.Dir = here
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go generate: %v\n%s", err, out)
	}
	for _, name := range []string{"executor_bpfel.o", "executor_bpfel.go"} {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(here, name))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs from the committed one; run `go generate ./internal/resident`", name)
		}
	}
}

// copyAll copies the files that match a pattern, relative to this folder, to the same
// places relative to another.
func copyAll(t *testing.T, pattern, to string) {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: no files: %v", pattern, err)
	}
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		dst := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dst, b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
