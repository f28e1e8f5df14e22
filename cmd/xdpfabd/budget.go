// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/xdpfab/xdpfab/internal/host"
)

// newBudget returns what all guests of the daemon may take together: three quarters of
// the memory of its cgroup or machine, and half of the file descriptors and mappings that
// a process may have. The rest is for the daemon itself: its queues and regions, and
// connections of root, who can look then.
func newBudget() *host.Budget {
	c := host.Cost{Memory: memoryHere() / 4 * 3}
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) == nil && r.Cur < math.MaxInt32 {
		c.Files = int(r.Cur) / 2
	}
	if n, ok := numberIn("/proc/sys/vm/max_map_count"); ok {
		c.Mappings = n / 2
	}
	return host.NewBudget("the daemon (MemoryMax of its unit, LimitNOFILE, vm.max_map_count)", c)
}

// memoryHere is the memory of the machine, or less if the cgroup of this process, or one
// above, has a limit.
func memoryHere() int {
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err != nil {
		return 0 // no limit
	}
	own, _ := os.ReadFile("/proc/self/cgroup")
	return min(int(s.Totalram)*int(s.Unit), memoryOfGroup("/sys/fs/cgroup", string(own)))
}

// machineMemory is the memory of the machine and its swap space, in bytes; 0 if it cannot
// be told. A check does not run in the cgroup of the daemon.
func machineMemory() int {
	var s unix.Sysinfo_t
	if err := unix.Sysinfo(&s); err != nil {
		return 0
	}
	return int(s.Totalram+s.Totalswap) * int(s.Unit)
}

// memoryOfGroup is the least limit of memory of a cgroup, as a process's file names it,
// and of those above. That of a container has no name within it, and lies at the top.
func memoryOfGroup(mount, own string) int {
	least := math.MaxInt
	for line := range strings.Lines(own) {
		path, is := strings.CutPrefix(strings.TrimSpace(line), "0::/")
		for at := filepath.Join("/", path); is; at = filepath.Dir(at) {
			if n, ok := numberIn(filepath.Join(mount, at, "memory.max")); ok {
				least = min(least, n)
			}
			is = at != "/"
		}
	}
	return least
}

// numberIn reads a number from a file of the kernel's.
func numberIn(path string) (int, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	return n, err == nil
}
