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
	"time"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// twoCores are two cores that this process may use.
func twoCores(t *testing.T) (a, b int) {
	t.Helper()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	var cores []int
	for c := range len(all) * 64 {
		if all.IsSet(c) {
			cores = append(cores, c)
		}
	}
	if len(cores) < 2 || runtime.GOMAXPROCS(0) < 2 {
		t.Skip("needs two cores")
	}
	return cores[0], cores[1]
}

// A line crosses, in a time that is no verdict on this machine, and the threads get their
// cores and their priority back.
func TestCrossing(t *testing.T) {
	a, b := twoCores(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for range 3 {
		start := time.Now()
		ns, err := crossing(a, b, pingTime)
		if err != nil {
			t.Fatal(err)
		}
		if ns <= 0 || ns > float64(pingPatience) {
			t.Errorf("a line takes %v ns", ns)
		}
		if took := time.Since(start); took < pingTime {
			t.Errorf("the game took %v, want %v at least", took, pingTime)
		}
	}
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := onCore(b, func() {}); err != nil {
		t.Fatal(err)
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("cores %v, %v; want %v", after, err, before)
	}
	if now, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err != nil || now != nice {
		t.Errorf("priority %d, %v; want %d", now, err, nice)
	}
	if _, err := crossing(a, 1023, pingTime); err == nil || !strings.Contains(err.Error(), "core 1023") {
		t.Errorf("on a core that is not there: %v", err)
	}
}

// A game without another side ends, and says nothing.
func TestCrossingAlone(t *testing.T) {
	r := &rally{end: time.Now().Add(10 * time.Millisecond)}
	if ns := r.serve(time.Minute); ns != 0 {
		t.Errorf("%v ns, want 0", ns)
	}
	r = &rally{end: time.Now().Add(10 * time.Millisecond)}
	r.answer()
	if r.back.word.Load() != 0 {
		t.Error("something came back that was never sent")
	}
}

// Processes stand still while they are looked at, and go on afterwards.
func TestStill(t *testing.T) {
	c := exec.Command("sleep", "300")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: c}
	stopped := func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(b), ") T ")
	}
	if err := still([]*process{p}, func() error {
		testnet.Eventually(t, "the process stands still", stopped)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "the process goes on", func() bool { return !stopped() })
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was told to end
	if err := still([]*process{p}, func() error { return nil }); err != nil {
		t.Errorf("with a process that has ended: %v", err)
	}
}
