// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// folder has the two programs, which programs makes once and TestMain removes: the
// demo needs real processes. Everybody may enter it.
var folder string

var programs = sync.OnceValue(func() (err error) {
	if folder, err = os.MkdirTemp("", "xdpfab-test-"); err == nil {
		err = errors.Join(os.Chmod(folder, 0o755), testnet.Programs(folder, "xdpfab", "xdpfabd"))
	}
	return err
})

func build(t *testing.T) (client string) {
	t.Helper()
	testnet.Require(t)
	if err := programs(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, "xdpfab")
}

// leftovers are the namespaces that processes of these ids made, and the demo's
// directories in dir.
func leftovers(pid string, dir string) (found []string) {
	ns, _ := filepath.Glob("/run/netns/xf" + pid + "-*")
	dirs, _ := filepath.Glob(filepath.Join(dir, "xdpfab-demo-*"))
	return append(ns, dirs...)
}

// A demo that is interrupted cleans up and says that it was interrupted.
func TestDemoInterrupted(t *testing.T) {
	client, dir := build(t), t.TempDir()
	cmd := exec.Command(client, "demo")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The demo is in the middle of its work once the daemon's socket exists.
	testnet.Eventually(t, "the daemon of the demo runs", func() bool {
		found, _ := filepath.Glob(filepath.Join(dir, "xdpfab-demo-*", "control.sock"))
		return found != nil
	})
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.HasPrefix(errs.String(), "xdpfab: ") || out.Len() != 0 {
		t.Errorf("exit code %d, %q, output %q", cmd.ProcessState.ExitCode(), errs.String(), out.String())
	}
	if left := leftovers(strconv.Itoa(cmd.Process.Pid), dir); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// A daemon that cannot run is reported with its own error text.
func TestDemoWithoutDaemon(t *testing.T) {
	client, dir := build(t), t.TempDir()
	cmd := exec.Command(client, "demo", "--daemon", "/bin/false")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(string(out), "the daemon ended at once") {
		t.Errorf("exit code %d, %s", cmd.ProcessState.ExitCode(), out)
	}
	if left := leftovers(strconv.Itoa(cmd.Process.Pid), dir); left != nil {
		t.Errorf("left behind: %v", left)
	}
}
