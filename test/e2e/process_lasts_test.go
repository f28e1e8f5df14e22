// SPDX-License-Identifier: Apache-2.0

//go:build linux

package e2e

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"testing"

	"github.com/xdpfab/xdpfab/internal/testnet"
)

// A program that a test has started lives on when threads of the test end, as those of
// pollers do: its death signal is bound to the thread that started it.
func TestProcessOutlivesThreads(t *testing.T) {
	testnet.Require(t)
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip("there is no sleep(1)")
	}
	net := testnet.NewPair(t, testnet.Options{})
	all := []*process{start(t, nil, sleep, []string{"1000"}), start(t, net.A, sleep, []string{"1000"})}
	var ready, ended sync.WaitGroup
	const threads = 50 // more than the runtime has
	ready.Add(threads)
	for range threads {
		ended.Go(func() {
			runtime.LockOSThread() // and never unlocked, so the thread ends
			ready.Done()
			ready.Wait()
		})
	}
	ended.Wait()
	for _, p := range all {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		<-p.done
		if by := p.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); by != syscall.SIGTERM {
			t.Errorf("%s was ended by signal %v, want that of the test, %v", p.name, by, syscall.SIGTERM)
		}
	}
}
