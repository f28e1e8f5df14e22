// SPDX-License-Identifier: Apache-2.0

//go:build linux

package veth

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// asVictim makes the test binary build every topology and wait to be killed.
const asVictim = "XDPFAB_VETH_TEST_VICTIM"

func TestMain(m *testing.M) {
	if os.Getenv(asVictim) == "" {
		os.Exit(m.Run())
	}
	_, err1 := New(Options{})
	_, err2 := NewStar(3, Options{})
	_, err3 := NewRouted(Options{})
	fmt.Println(err1, err2, err3)
	time.Sleep(time.Hour) // the runtime ends a process whose goroutines all wait for ever
}

// A process that is killed leaves no namespace.
func TestKilledProcessLeavesNothing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: creates network namespaces")
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), asVictim+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said, _ := bufio.NewReader(out).ReadString('\n')
	pattern := fmt.Sprintf("/run/netns/%s%d-*", prefix, cmd.Process.Pid)
	made, _ := filepath.Glob(pattern)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if said != "<nil> <nil> <nil>\n" || len(made) != 2+4+3 {
		t.Fatalf("the victim said %q and made %q", said, made)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		left, _ := filepath.Glob(pattern)
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("left behind: %q", left)
		}
	}
}
