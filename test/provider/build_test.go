// SPDX-License-Identifier: Apache-2.0

// Package provider tests the libfabric provider, which is in C: its pure parts against
// the Go packages that do the same.
package provider

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

const (
	source = "../../provider/"
	// The optimiser is off beside sanitizers, and at its first level otherwise: it takes
	// longer than the tests.
	sanitized = "-O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all"
	threaded  = "-O0 -g1 -fsanitize=thread"
	optimised = "-O1"
)

// folder has the objects, and is removed in the end.
var folder string

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "provider"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// objects has a func() (string, error) for each file and flags: tests share what is
// compiled.
var objects sync.Map

// compilers bounds how many run at a time.
var compilers = make(chan struct{}, runtime.NumCPU())

// object compiles a file of provider, once, and returns the path of the object.
func object(flags, name string) (string, error) {
	compile, _ := objects.LoadOrStore(flags+name, sync.OnceValues(func() (string, error) {
		f, err := os.CreateTemp(folder, filepath.Base(name)+"*.o")
		if err != nil {
			return "", err
		}
		f.Close()
		args := strings.Fields("-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wconversion -pthread -I ../../include " + flags)
		args = append(args, "-c", "-o", f.Name(), source+name)
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("gcc %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return f.Name(), nil
	}))
	return compile.(func() (string, error))()
}

// build makes a program of provider/test, with files of provider, and returns its path.
func build(t *testing.T, flags, program string, files ...string) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("needs gcc: apt-get install gcc libc6-dev")
	}
	if _, err := os.Stat("/usr/include/rdma/fi_atomic.h"); err != nil {
		t.Skip("needs the headers of libfabric: apt-get install libfabric-dev")
	}
	path := filepath.Join(t.TempDir(), program)
	files = append([]string{"test/" + program + ".c"}, files...)
	compiled, errs := make([]string, len(files)), make([]error, len(files))
	var all sync.WaitGroup
	for i, f := range files {
		all.Go(func() {
			compilers <- struct{}{}
			compiled[i], errs[i] = object(flags, f)
			<-compilers
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	args := append(append(strings.Fields(flags), "-pthread", "-o", path), compiled...)
	if out, err := exec.Command("gcc", append(args, "-lm", "-lfabric")...).CombinedOutput(); err != nil {
		t.Fatalf("gcc %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return path
}

// run runs a program that has to succeed, and returns what it prints.
func run(t *testing.T, input []byte, path string, args ...string) []byte {
	t.Helper()
	c := exec.Command(path, args...)
	var problems bytes.Buffer
	c.Stdin, c.Stderr = bytes.NewReader(input), &problems
	c.Env = append(os.Environ(), "ASAN_OPTIONS=detect_leaks=1", "TSAN_OPTIONS=halt_on_error=1")
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", filepath.Base(path), args, err, tail(out), tail(problems.Bytes()))
	}
	return out
}

// tail returns the end of what a program has printed.
func tail(out []byte) []byte { return out[max(0, len(out)-4000):] }
