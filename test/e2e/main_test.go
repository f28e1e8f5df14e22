// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package e2e tests the product as its users have it: the daemon and the client
// as processes, in network namespaces joined by veth, with real packets between
// them. Other packages test what an operation does on its way; these tests check
// the results: values, messages, exit codes, a clean interface.
//
// No verdict depends on how long something took. Times limit how long a test
// waits for an event that must come, and are generous.
package e2e

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// The programs under test, built by TestMain; folder is where they are, and by
// it leftovers are recognized.
var folder, xdpfabdPath, xdpfabPath string

func TestMain(m *testing.M) {
	testnet.Confine() // first, so that what follows is confined
	if os.Getenv(asVisitor) != "" {
		os.Exit(visitorMain(os.Args[1:]))
	}
	if os.Getenv(asWaiter) != "" {
		os.Exit(waiterMain(os.Args[1:]))
	}
	if os.Getenv(asAdder) != "" {
		os.Exit(adderMain(os.Args[1:]))
	}
	if os.Getenv(asParent) != "" {
		os.Exit(parentMain(os.Args[1:]))
	}
	if os.Getenv(asInquirer) != "" {
		os.Exit(inquirerMain(os.Args[1:]))
	}
	if os.Getenv(asNamer) != "" {
		os.Exit(namerMain(os.Args[1:]))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Geteuid() != 0 {
		return m.Run() // every test skips, and says why
	}
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(folder)
	// Parallel tests wait for a give-up time, and take no core meanwhile.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	code := m.Run()
	for _, what := range leftovers() {
		fmt.Fprintln(os.Stderr, "e2e: left behind:", what)
		code = max(code, 1)
	}
	return code
}

// build makes both binaries, in a folder that users without rights can enter.
func build() (err error) {
	if folder, err = os.MkdirTemp("", "xdpfab-e2e-"); err != nil {
		return err
	}
	if err := os.Chmod(folder, 0o755); err != nil {
		return err
	}
	xdpfabdPath, xdpfabPath = filepath.Join(folder, "xdpfabd"), filepath.Join(folder, "xdpfab")
	return testnet.Programs(folder, "xdpfabd", "xdpfab")
}

// leftovers finds what this run has left behind: namespaces that this process or
// one of the programs made, processes of the programs, and their sockets.
func leftovers() []string {
	found := namespaces(os.Getpid())
	exes, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range exes {
		if exe, err := os.Readlink(link); err == nil && strings.HasPrefix(exe, folder+"/") {
			found = append(found, "process "+link+" of "+exe)
		}
	}
	sockets, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(sockets)) {
		if strings.Contains(line, socketName) && strings.Contains(line, os.TempDir()) {
			found = append(found, "socket "+strings.TrimSpace(line))
		}
	}
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && path != xdpfabPath && path != xdpfabdPath {
			found = append(found, "file "+path)
		}
		return nil
	})
	return found
}

// namespaces lists those that a process made by package veth, by their names.
func namespaces(pid int) []string {
	found, _ := filepath.Glob(fmt.Sprintf("/run/netns/xf%d-*", pid))
	return found
}
