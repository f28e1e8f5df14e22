// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/xdpfab/xdpfab/internal/errno"
	"github.com/xdpfab/xdpfab/internal/process"
	"github.com/xdpfab/xdpfab/internal/testnet"
)

// listenEnv has the test's program listen at a path, and answer nobody.
const listenEnv = "XDPFAB_TEST_LISTEN"

func TestMain(m *testing.M) {
	if path := os.Getenv(listenEnv); path != "" {
		if _, err := net.Listen("unix", path); err != nil {
			panic(err)
		}
		time.Sleep(time.Hour) // the runtime ends a process whose goroutines all wait forever
	}
	os.Exit(testnet.Run(m))
}

// stopped returns a socket of a stopped process, in a network namespace of its own or
// not.
func stopped(t *testing.T, flags uintptr) (path string, pid int) {
	path = filepath.Join(t.TempDir(), "x.sock")
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), listenEnv+"="+path)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	if err := cmd.Start(); errors.Is(err, syscall.EPERM) {
		t.Skip("a network namespace takes CAP_SYS_ADMIN")
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	testnet.Eventually(t, "it listens", func() bool {
		c, err := net.Dial("unix", path)
		return err == nil && c.Close() == nil
	})
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	testnet.Eventually(t, "it is stopped", func() bool { return process.Stopped(cmd.Process.Pid) })
	return path, cmd.Process.Pid
}

// A daemon of another network namespace is not waited for, unless its socket was chosen.
func TestStoppedElsewhere(t *testing.T) {
	path, pid := stopped(t, syscall.CLONE_NEWNET)
	_, err := OpenAttached(t.Context(), "eth0", path, false)
	_, asked := DialHost(t.Context(), path, Within(false))
	for _, err := range []error{err, asked} {
		if !errors.Is(err, errno.NoDaemon) || errors.Is(err, ErrHostSilent) {
			t.Errorf("%v, want that process %d is of another namespace", err, pid)
		}
	}
}

// A stopped daemon is named when the context ends, with the remedy.
func TestStoppedHere(t *testing.T) {
	path, pid := stopped(t, 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := OpenAttached(ctx, "eth0", path, false)
	want := fmt.Sprintf("s: it is stopped (process %d, %s): have it go on with `kill -CONT %[1]d`", pid, process.Name(pid))
	if !errors.Is(err, ErrHostSilent) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
