// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Two threads that want the same processor wait for each other, and the kernel counts it.
func TestWaitsOfThreads(t *testing.T) {
	before := waits(os.Getpid())
	if len(before) == 0 {
		t.Skip("this kernel does not count for how long threads wait (CONFIG_SCHED_INFO)")
	}
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if all.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	var over atomic.Bool
	defer over.Store(true)
	for range 2 {
		go func() {
			runtime.LockOSThread() // never unlocked: the thread ends with its goroutine
			_ = unix.SchedSetaffinity(0, &one)
			for !over.Load() { // it spins
			}
		}()
	}
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if longestWait(before, waits(os.Getpid())) > 20*time.Millisecond {
			return
		}
	}
	t.Error("no thread has waited for a processor in a minute")
}

func TestLongestWait(t *testing.T) {
	before := map[string]time.Duration{"1": 5 * time.Second, "2": time.Second}
	after := map[string]time.Duration{"1": 6 * time.Second, "3": 2 * time.Second}
	if got := longestWait(before, after); got != 2*time.Second {
		t.Errorf("the longest wait is that of thread 3, which is new, 2s; got %v", got)
	}
	if got := longestWait(before, nil); got != 0 {
		t.Errorf("after the end of the process nobody waits; got %v", got)
	}
}
