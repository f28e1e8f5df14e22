// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A contestant has its priority, for itself and for its scheduling group, and the
// benchmark keeps its own.
func TestPriority(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	own, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("cat")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	restore := raise()
	err = c.Start()
	restore()
	if err != nil {
		t.Fatal(err)
	}
	favour(c.Process.Pid)
	if v, err := unix.Getpriority(unix.PRIO_PROCESS, c.Process.Pid); err != nil || v != 20-nice {
		t.Errorf("the contestant's priority: %d, %v; want %d", v, err, 20-nice)
	}
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", c.Process.Pid)); err == nil && !strings.HasSuffix(strings.TrimSpace(string(b)), fmt.Sprint("nice ", nice)) {
		t.Errorf("the contestant's group: %s; want nice %d", b, nice)
	}
	if v, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err != nil || v != own {
		t.Errorf("own priority: %d, %v; want %d as before", v, err, own)
	}
	if err := in.Close(); err != nil {
		t.Error(err)
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
