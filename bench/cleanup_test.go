// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// program builds this command into a directory of its own, beside contestants that the
// caller gives as shell scripts, by name.
func program(t *testing.T, contestants map[string]string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "bench")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("building: %v: %s", err, out)
	}
	for name, script := range contestants {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// start runs the command, with the directory that it may use for temporary files.
func start(t *testing.T, path, tmp string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	cmd := exec.Command(path, "-mode", "quick")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &log
}

// leftovers are the namespaces and the files that a process of this id made.
func leftovers(pid int, tmp string) []string {
	ns, _ := filepath.Glob(fmt.Sprintf("/run/netns/xf%d-*", pid))
	files, _ := filepath.Glob(filepath.Join(tmp, "*"))
	return append(ns, files...)
}

func TestNothingIsLeftAfterAFailure(t *testing.T) {
	path, tmp := program(t, map[string]string{"floor": "exit 3"}), t.TempDir()
	cmd, log := start(t, path, tmp)
	if err := cmd.Wait(); err == nil || !strings.Contains(log.String(), "floor ended before it printed") {
		t.Errorf("%v: %s", err, log)
	}
	if left := leftovers(cmd.Process.Pid, tmp); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// A benchmark that is interrupted while a server and a client run ends both and cleans
// up.
func TestNothingIsLeftAfterAnInterrupt(t *testing.T) {
	ids := t.TempDir()
	script := "echo $$ > " + ids + "/$1; echo ready; exec sleep 300"
	path, tmp := program(t, map[string]string{"floor": script}), t.TempDir()
	cmd, log := start(t, path, tmp)
	testnet.Eventually(t, "the client runs", func() bool {
		b, _ := os.ReadFile(filepath.Join(ids, "client"))
		return bytes.HasSuffix(b, []byte("\n"))
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v: %s", err, log)
	}
	if left := leftovers(cmd.Process.Pid, tmp); left != nil {
		t.Errorf("left behind: %v", left)
	}
	for _, side := range []string{"echo", "client"} {
		b, err := os.ReadFile(filepath.Join(ids, side))
		if err != nil {
			t.Fatalf("the %s never ran: %v: %s", side, err, log)
		}
		var pid int
		if _, err := fmt.Sscan(string(b), &pid); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
			t.Errorf("the %s, process %d, still runs: %v", side, pid, err)
		}
	}
}
