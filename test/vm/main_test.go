// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// patience is how long a guest may take for anything; only a broken guest takes
// so long.
const patience = 3 * time.Minute

func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// cached is the user's cache, with kernels that earlier runs have fetched.
func cached(t *testing.T) *Cache {
	t.Helper()
	c, err := OpenCache(os.Getenv("XDPFAB_VM_CACHE"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// boots reports whether to run the tests that need QEMU, kernels, and minutes.
var boots = flag.Bool("boot", false, "run the tests that boot virtual machines")

// kernel is a named kernel; the test is skipped unless machines are wanted.
func kernel(t *testing.T, name string) *Kernel {
	t.Helper()
	if !*boots {
		t.Skip("boots virtual machines: make test-vm-self")
	}
	k, err := cached(t).Kernel(name, AMD64, "", false)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// boot starts a machine until the test's end.
func boot(t *testing.T, c Config) *Machine {
	t.Helper()
	if c.Accel == "" {
		var err error
		if c.Accel, _, err = cached(t).Accel(limited(t), Auto, c.Image.Kernel); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Start(limited(t), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.Close()
		if _, err := os.Stat(m.dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the machine left its folder: %v", err)
		}
	})
	return m
}

// fails expects an error of a kind that contains some words.
func fails(t *testing.T, err, is error, words ...string) {
	t.Helper()
	if !errors.Is(err, is) {
		t.Errorf("got %v, want %v", err, is)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
}

// write makes a file of the test's.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}
