// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// watch ends the machine if its guest says nothing for the limit. The time for which QEMU
// waited for a processor does not count: the host was busy then, and the guest could not
// have said anything.
func (m *Machine) watch() {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last, waited := time.Now(), waits(m.cmd.Process.Pid)
	for {
		select {
		case <-m.ended:
			return
		case <-tick.C:
		}
		now, waiting := time.Now(), waits(m.cmd.Process.Pid)
		m.mu.Lock()
		m.quiet += now.Sub(last) - longestWait(waited, waiting)
		hangs := m.quiet >= m.silence
		m.mu.Unlock()
		if hangs {
			m.end(fmt.Errorf("%w: not a word from it for %v", ErrHang, m.silence))
			return
		}
		last, waited = now, waiting
	}
}

// waits returns the time for which each thread of a process has waited for a processor so
// far, by its number. It is empty on kernels without CONFIG_SCHED_INFO, and after the end
// of the process. See sched-stats.rst of the kernel's documentation.
func waits(pid int) map[string]time.Duration {
	of := map[string]time.Duration{}
	files, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task", "*", "schedstat"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		fields := strings.Fields(string(text)) // ns on a processor, ns of waiting, turns
		if err != nil || len(fields) < 2 {
			continue // the thread has ended
		}
		ns, _ := strconv.ParseInt(fields[1], 10, 64)
		of[filepath.Base(filepath.Dir(file))] = time.Duration(ns)
	}
	return of
}

// longestWait returns for how long the thread that waited most did so between two
// readings. Each virtual processor is a thread, and a guest may need any of them to go
// on.
func longestWait(before, after map[string]time.Duration) (longest time.Duration) {
	for thread, waited := range after {
		longest = max(longest, waited-before[thread])
	}
	return longest
}
