// SPDX-License-Identifier: Apache-2.0

//go:build linux

package bpf

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// compiler is the version that the committed object was made with.
const compiler = "14.0.6"

// TestGenerateIsReproducible regenerates the bindings in two copies of the
// module at different depths; both must equal what is committed, byte for byte.
func TestGenerateIsReproducible(t *testing.T) {
	if testing.Short() {
		t.Skip("builds bpf2go; run without -short")
	}
	if _, err := exec.LookPath("clang-14"); err != nil {
		t.Skipf("needs clang-14, which make generate installs: %v", err)
	}
	out, err := exec.Command("clang-14", "--version").Output()
	if err != nil {
		t.Fatalf("clang-14 --version: %v", err)
	}
	if !strings.Contains(string(out), compiler) {
		t.Skipf("needs clang-14 of version %s: this is %s", compiler, out)
	}
	root := t.TempDir()
	for _, dir := range []string{filepath.Join(root, "a"), filepath.Join(root, "some", "other", "place")} {
		for _, pattern := range []string{"../go.mod", "../go.sum", "../tools/go.*", "doc.go", "steer.c", "headers/*.h"} {
			copyAll(t, pattern, filepath.Join(dir, "bpf"))
		}
		cmd := exec.Command("go", "generate", ".")
		cmd.Dir = filepath.Join(dir, "bpf")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go generate: %v\n%s", err, out)
		}
		for _, name := range []string{"steer_bpfel.o", "steer_bpfel.go"} {
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, "bpf", name))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s generated in %s differs from the committed one; run `go generate ./bpf`", name, dir)
			}
		}
	}
}

// copyAll copies the files that match a pattern, relative to this folder, to the
// same places relative to another.
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
