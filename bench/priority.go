// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// nice is the priority of all contestants: other processes of the machine then decide
// less about the figures.
const nice = -10

// raise gives this thread the priority of contestants, which a child inherits, and
// returns what undoes that. A process without the right to it keeps its priority.
func raise() (restore func()) {
	const kernelBase = 20 // the system call returns 20 minus the nice value
	before, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || unix.Setpriority(unix.PRIO_PROCESS, 0, nice) != nil {
		return func() {}
	}
	return func() { _ = unix.Setpriority(unix.PRIO_PROCESS, 0, kernelBase-before) } // it had that before
}

// favour gives the scheduling group of a process, which has a session of its own, the
// priority of contestants: with groups, the kernel weighs a process against those of its
// own group alone. A kernel without groups has no such file.
func favour(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(nice)), 0)
}
